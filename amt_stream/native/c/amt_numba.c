/* What kernels call of numba's runtime: one copy for all models of a program. */
#include "amt_numba.h"

#define ALIGNMENT 64
#define UP(n) (((n) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

AMT_IN_THREAD amt_scratch *amt_running;

/* After the last array. Kernels free arrays in nearly the reverse order: what no longer has a
   reference is freed when all after it have none. */
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
    amt_array *array = (amt_array *)at;
    int64_t data = (int64_t)(intptr_t)(at + ALIGNMENT), before = (int64_t)(intptr_t)scratch->last;
    *array = (amt_array){1, 0, before, data, (int64_t)size, 0};
    scratch->last = array;
    return array;
}

void NRT_incref(void *array) {
    if (array) ((amt_array *)array)->references++;
}

void NRT_decref(void *array) {
    amt_scratch *scratch = amt_running;
    if (!array || --((amt_array *)array)->references) return;
    while (scratch->last && !scratch->last->references) {
        scratch->used = (size_t)((uint8_t *)scratch->last - scratch->start);
        scratch->last = (amt_array *)(intptr_t)scratch->last->before;
    }
}

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
