/* Memory for arrays that a kernel makes and that end with it. */
#ifndef AMT_NUMBA_H
#define AMT_NUMBA_H
#include <stddef.h>
#include <stdint.h>

/* As numba lays it out on a processor of 64 bits, which kernels expect on all. */
typedef struct {
    int64_t references, destructor, before, data, size, allocator;
} amt_array;

typedef struct {
    uint8_t *start;
    size_t size, used;
    amt_array *last;
    int is_short; /* whether it was not enough */
} amt_scratch;

/* In a library that is loaded later, the first use in each thread would otherwise allocate. */
#ifdef __GLIBC__
#define AMT_IN_THREAD __attribute__((tls_model("initial-exec"))) _Thread_local
#else
#define AMT_IN_THREAD _Thread_local
#endif

/* Of the instance that runs in this thread. */
extern AMT_IN_THREAD amt_scratch *amt_running;
#endif
