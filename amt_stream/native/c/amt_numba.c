/* What kernels call of numba's runtime: one copy for all models of a program. */
#include "amt_numba.h"

#define ALIGNMENT 64
#define UP(n) (((n) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

AMT_IN_THREAD amt_scratch *amt_running;

/* As numba lays it out on a processor of 64 bits, which kernels expect on all. */
typedef struct {
    int64_t references, destructor, destructor_info, data, size, allocator;
} memory_info;

/* All that lives until the kernel returns, so that it is freed together. */
#ifdef __wasm__
void *NRT_MemInfo_alloc_aligned(int64_t size, uint32_t alignment) {
#else
void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t alignment) {
#endif
    amt_scratch *scratch = amt_running;
    size_t needed = ALIGNMENT + UP((size_t)size);
    (void)alignment;
    if (needed > scratch->size - scratch->used) {
        scratch->is_short = 1;
        return NULL;
    }
    uint8_t *at = scratch->start + scratch->used;
    scratch->used += needed;
    memory_info *info = (memory_info *)at;
    *info = (memory_info){1, 0, 0, (int64_t)(intptr_t)(at + ALIGNMENT), (int64_t)size, 0};
    return info;
}

void NRT_incref(void *memory) { (void)memory; }
void NRT_decref(void *memory) { (void)memory; }

/* Arrays of kernels are contiguous: a new shape needs no copy. */
int32_t numba_attempt_nocopy_reshape(int64_t axes, const int64_t *shape, const int64_t *strides,
                                     int64_t new_axes, const int64_t *new_shape,
                                     int64_t *new_strides, int64_t item, int32_t is_fortran) {
    int64_t stride = item;
    (void)axes, (void)shape, (void)strides, (void)is_fortran;
    for (int64_t k = new_axes - 1; k >= 0; k--) {
        new_strides[k] = stride;
        stride *= new_shape[k];
    }
    return 1;
}
