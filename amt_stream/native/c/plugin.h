/* A model in a plug-in: it takes sound of any length, and shows the values of the latest frame. */
#include "amt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_GAIN 1e-4
#define MOST_GAIN 1e4
#define MOST_LEVEL 200.0
#define MOST 1e9

typedef struct {
    amt *model;
    const float **each; /* channels, from where the model goes on */
    float *frames, *shown;
    uint64_t invalid;
} meter;

/* What a host shows: the columns, and last how many samples were invalid. */
static uint32_t value_count(void) { return (uint32_t)AMT(about)()->columns + 1; }

static amt_column value_column(uint32_t k) {
    static const amt_column invalid = {"invalid", "samples"};
    return k + 1 < value_count() ? AMT(columns)()[k] : invalid;
}

static int is_level(uint32_t k) {
    const char *unit = value_column(k).unit;
    return unit[0] == 'd' || unit[0] == 'L'; /* dB and its like, LUFS, LU */
}

/* The least one stands for no reading. */
static double least_of(uint32_t k) { return is_level(k) ? -MOST_LEVEL : 0.0; }

static double most_of(uint32_t k) { return is_level(k) ? MOST_LEVEL : MOST; }

/* Hosts cannot show what is no number. */
static void show(meter *m, uint32_t k, double value) {
    if (!(value > least_of(k))) value = least_of(k);
    m->shown[k] = (float)(value < most_of(k) ? value : most_of(k));
}

/* Plug-ins of one model for other channels and rates are other ones. */
static void write_id(char *to, size_t room, const char *format) {
    const amt_info *about = AMT(about)();
    snprintf(to, room, format, about->model, (int)about->channels, (int)about->fs);
}

static void meter_end(meter *m) {
    AMT(destroy)(m->model);
    free((void *)m->each), free(m->frames), free(m->shown);
}

static void meter_forget(meter *m) {
    AMT(reset)(m->model);
    m->invalid = 0;
    for (uint32_t k = 0; k < value_count(); k++) show(m, k, NAN);
}

/* False if there is no memory; meter_end frees what there was. */
static int meter_begin(meter *m) {
    const amt_info *about = AMT(about)();
    m->model = AMT(create)(NULL);
    m->each = calloc((size_t)about->channels, sizeof *m->each);
    m->frames = calloc((size_t)about->columns * (size_t)about->frames_per_block, sizeof(float));
    m->shown = calloc(value_count(), sizeof(float));
    if (!m->model || !m->each || !m->frames || !m->shown) return 0;
    meter_forget(m);
    return 1;
}

/* Takes samples `from` to `to` of each channel. A frame with invalid samples is not a reading. */
static void meter_take(meter *m, const float *const *channels, uint32_t from, uint32_t to) {
    const amt_info *about = AMT(about)();
    for (int32_t used; from < to; from += (uint32_t)used) {
        for (int32_t c = 0; c < about->channels; c++) m->each[c] = channels[c] + from;
        int32_t given = AMT(process)(m->model, m->each, (int32_t)(to - from), m->frames,
                                     about->frames_per_block, &used);
        if (given < 0) meter_forget(m);
        if (given <= 0) continue;
        const float *latest = m->frames + (given - 1) * about->columns;
        const uint64_t invalid = AMT(invalid)(m->model);
        for (int32_t c = 0; c < about->columns; c++)
            show(m, (uint32_t)c, invalid == m->invalid ? latest[c] : NAN);
        m->invalid = invalid;
    }
    show(m, value_count() - 1, (double)AMT(invalid)(m->model));
}

/* A gain out of its range is no calibration: it makes all samples invalid. */
static void meter_set_gain(meter *m, float gain) {
    const int is_gain = gain >= (float)LEAST_GAIN && gain <= (float)MOST_GAIN;
    AMT(set_gain)(m->model, is_gain ? gain : 0.0f);
}

static void pass_through(const float *const *in, float *const *out, uint32_t n) {
    for (int32_t c = 0; c < AMT(about)()->channels; c++)
        if (out[c] != in[c]) memcpy(out[c], in[c], n * sizeof(float));
}
