/* An LV2 plug-in of a model: sound passes through, and the latest frame stands in output controls.
   Ports, in this order: inputs and outputs of sound for each channel, the gain, the values. */
#include "plugin.h"

#include <lv2/core/lv2.h>

typedef struct {
    meter meter;
    float **ports;
} plugin;

static void cleanup(LV2_Handle handle) {
    plugin *p = handle;
    meter_end(&p->meter);
    free(p->ports), free(p);
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *path,
                              const LV2_Feature *const *features) {
    const amt_info *about = AMT(about)();
    (void)descriptor, (void)path, (void)features;
    if (rate != about->fs) return NULL; /* a model is exported for one sampling rate */
    plugin *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->ports = calloc((size_t)(2 * about->channels + 1) + value_count(), sizeof *p->ports);
    if (meter_begin(&p->meter) && p->ports) return p;
    cleanup(p);
    return NULL;
}

static void connect_port(LV2_Handle handle, uint32_t port, void *data) {
    ((plugin *)handle)->ports[port] = data;
}

static void activate(LV2_Handle handle) { meter_forget(&((plugin *)handle)->meter); }

static void run(LV2_Handle handle, uint32_t n) {
    plugin *p = handle;
    const int32_t channels = AMT(about)()->channels;
    const float *const *sound = (const float *const *)p->ports;
    float **values = p->ports + 2 * channels + 1;
    meter_set_gain(&p->meter, *p->ports[2 * channels]);
    meter_take(&p->meter, sound, 0, n);
    for (uint32_t k = 0; k < value_count(); k++) *values[k] = p->meter.shown[k];
    pass_through(sound, p->ports + channels, n);
}

LV2_SYMBOL_EXPORT const LV2_Descriptor *lv2_descriptor(uint32_t index) {
    static char uri[96];
    static const LV2_Descriptor one = {uri, instantiate, connect_port, activate,
                                       run, NULL,        cleanup,      NULL};
    if (!*uri) write_id(uri, sizeof uri, "urn:amt-stream:%s-%d-%d"); /* as in the .ttl file of the model */
    return index ? NULL : &one;
}
