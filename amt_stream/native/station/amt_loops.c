/* What the loops of meters call of numba's runtime, with the memory of the C library. */
#include "amt_numba.h"

#include <stdlib.h>

void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t alignment) {
    amt_array *array = malloc(sizeof *array + alignment + size);
    if (!array) return NULL;
    int64_t data = (int64_t)(intptr_t)(array + 1);
    *array = (amt_array){1, 0, 0, (data + alignment - 1) / alignment * alignment, (int64_t)size, 0};
    return array;
}

void NRT_incref(void *array) {
    if (array) ((amt_array *)array)->references++;
}

void NRT_decref(void *array) {
    if (array && !--((amt_array *)array)->references) free(array);
}
