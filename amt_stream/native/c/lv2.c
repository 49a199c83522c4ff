/* An LV2 plug-in of a model: sound passes through, and the latest frame stands in output controls.
   Ports, in this order: inputs and outputs of sound for each channel, the gain, the columns.
   AMT_LV2_URI is its URI, as in the .ttl file of the model. */
#include "amt.h"

#include <lv2/core/lv2.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    amt *model;
    const float **each;
    float *frames, **ports;
} plugin;

static void cleanup(LV2_Handle handle) {
    plugin *p = handle;
    AMT(destroy)(p->model);
    free(p->each), free(p->frames), free(p->ports), free(p);
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *path,
                              const LV2_Feature *const *features) {
    const amt_info *about = AMT(about)();
    (void)descriptor, (void)path, (void)features;
    if (rate != about->fs) return NULL; /* a model is exported for one sampling rate */
    plugin *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->model = AMT(create)(NULL);
    p->each = calloc((size_t)about->channels, sizeof *p->each);
    p->frames = calloc((size_t)about->columns * about->frames_per_block, sizeof(float));
    p->ports = calloc((size_t)(2 * about->channels + 1 + about->columns), sizeof *p->ports);
    if (p->model && p->each && p->frames && p->ports) return p;
    cleanup(p);
    return NULL;
}

static void connect_port(LV2_Handle handle, uint32_t port, void *data) {
    ((plugin *)handle)->ports[port] = data;
}

static void activate(LV2_Handle handle) { AMT(reset)(((plugin *)handle)->model); }

static void run(LV2_Handle handle, uint32_t n) {
    plugin *p = handle;
    const amt_info *about = AMT(about)();
    const int32_t channels = about->channels, columns = about->columns;
    float **values = p->ports + 2 * channels + 1;
    AMT(set_gain)(p->model, *p->ports[2 * channels]);
    for (int32_t done = 0, used; done < (int32_t)n; done += used) {
        for (int32_t c = 0; c < channels; c++) p->each[c] = p->ports[c] + done;
        int32_t given = AMT(process)(p->model, p->each, (int32_t)n - done, p->frames,
                                     about->frames_per_block, &used);
        if (given < 0) AMT(reset)(p->model);
        for (int32_t c = 0; given > 0 && c < columns; c++)
            *values[c] = p->frames[(given - 1) * columns + c];
    }
    for (int32_t c = 0; c < channels; c++)
        if (p->ports[channels + c] != p->ports[c])
            memcpy(p->ports[channels + c], p->ports[c], n * sizeof(float));
}

LV2_SYMBOL_EXPORT const LV2_Descriptor *lv2_descriptor(uint32_t index) {
    static const LV2_Descriptor one = {AMT_LV2_URI, instantiate, connect_port, activate,
                                       run,         NULL,        cleanup,      NULL};
    return index ? NULL : &one;
}
