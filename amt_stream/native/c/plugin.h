/* A model in a plug-in, which takes sound of any length and gives the latest frame. */
#include "amt.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    amt *model;
    const float **each; /* channels, from where the model goes on */
    float *frames;
} meter;

static void meter_end(meter *m) {
    AMT(destroy)(m->model);
    free((void *)m->each), free(m->frames);
}

/* False if there is no memory; meter_end frees what there was. */
static int meter_begin(meter *m) {
    const amt_info *about = AMT(about)();
    m->model = AMT(create)(NULL);
    m->each = calloc((size_t)about->channels, sizeof *m->each);
    m->frames = calloc((size_t)about->columns * (size_t)about->frames_per_block, sizeof(float));
    return m->model && m->each && m->frames;
}

/* The latest frame of samples `from` to `to` of each channel; NULL if they complete none. */
static const float *meter_take(meter *m, const float *const *channels, uint32_t from, uint32_t to) {
    const amt_info *about = AMT(about)();
    const float *latest = NULL;
    for (int32_t used; from < to; from += (uint32_t)used) {
        for (int32_t c = 0; c < about->channels; c++) m->each[c] = channels[c] + from;
        int32_t given = AMT(process)(m->model, m->each, (int32_t)(to - from), m->frames,
                                     about->frames_per_block, &used);
        if (given < 0) AMT(reset)(m->model);
        if (given > 0) latest = m->frames + (given - 1) * about->columns;
    }
    return latest;
}

#define MOST_LEVEL 200.0

static uint32_t columns(void) { return (uint32_t)AMT(about)()->columns; }

static int is_level(uint32_t column) {
    const char *unit = AMT(columns)()[column].unit;
    return unit[0] == 'd' || unit[0] == 'L'; /* dB and its like, LUFS, LU */
}

/* What stands for no reading yet. */
static double least_of(uint32_t column) { return is_level(column) ? -MOST_LEVEL : 0.0; }

static void pass_through(const float *const *in, float *const *out, uint32_t n) {
    for (int32_t c = 0; c < AMT(about)()->channels; c++)
        if (out[c] != in[c]) memcpy(out[c], in[c], n * sizeof(float));
}
