/* Memory for arrays that a kernel makes and that end with it. */
#ifndef AMT_NUMBA_H
#define AMT_NUMBA_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t *start;
    size_t size, used;
    int is_short; /* whether it was not enough */
} amt_scratch;

/* Of the instance that runs in this thread. */
extern _Thread_local amt_scratch *amt_running;
#endif
