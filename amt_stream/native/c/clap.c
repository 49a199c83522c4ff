/* A CLAP plug-in of a model: sound passes through, and the latest frame stands in parameters that a
   host can only read. The first parameter is the gain, which a project of the host stores.
   A level that is not known, or of silence, is the lowest of its range. */
#include "amt_clap.h"
#include "plugin.h"

#include <stdatomic.h>

enum { GAIN, VALUES, TEXT = 96 };

static char plugin_id[TEXT], plugin_name[TEXT];
static const char *features[] = {CLAP_PLUGIN_FEATURE_ANALYZER, NULL, NULL};
static clap_plugin_descriptor_t descriptor = {
    .clap_version = CLAP_VERSION_INIT,
    .id = plugin_id,
    .name = plugin_name,
    .vendor = "amt_stream",
    .url = "",
    .manual_url = "",
    .support_url = "",
    .description = "Meter that passes sound through: its readings are parameters",
    .features = features,
};

/* Events and `flush` belong to the thread of the sound while it runs; the host reads values and
   loads a state in its main thread. */
typedef struct {
    clap_plugin_t plugin;
    const clap_host_t *host;
    meter meter;
    _Atomic float gain, *values;
    float *told; /* values, as the host last heard of them */
} plugin;

static plugin *of(const clap_plugin_t *one) { return one->plugin_data; }

static void share_values(plugin *p) {
    for (uint32_t k = 0; k < value_count(); k++)
        atomic_store_explicit(p->values + k, p->meter.shown[k], memory_order_relaxed);
}

static void forget(plugin *p) {
    meter_forget(&p->meter);
    share_values(p);
    for (uint32_t k = 0; k < value_count(); k++) p->told[k] = NAN; /* so that the host hears of all */
}

static bool init(const clap_plugin_t *one) {
    plugin *p = of(one);
    p->values = calloc(value_count(), sizeof *p->values);
    p->told = calloc(value_count(), sizeof *p->told);
    if (!meter_begin(&p->meter) || !p->values || !p->told) return false;
    forget(p);
    return true;
}

static void destroy(const clap_plugin_t *one) {
    plugin *p = of(one);
    meter_end(&p->meter);
    free((void *)p->values), free(p->told), free(p);
}

static bool activate(const clap_plugin_t *one, double rate, uint32_t least, uint32_t most) {
    (void)least, (void)most;
    if (rate != AMT(about)()->fs) return false; /* a model is exported for one sampling rate */
    forget(of(one));
    return true;
}

static void do_nothing(const clap_plugin_t *one) { (void)one; }

static bool start_processing(const clap_plugin_t *one) {
    (void)one;
    return true;
}

static void reset(const clap_plugin_t *one) { forget(of(one)); }

static void take_event(plugin *p, const clap_event_header_t *header) {
    if (header->space_id != CLAP_CORE_EVENT_SPACE_ID || header->type != CLAP_EVENT_PARAM_VALUE)
        return;
    const clap_event_param_value_t *event = (const void *)header;
    if (event->param_id == GAIN && event->value >= LEAST_GAIN && event->value <= MOST_GAIN)
        atomic_store_explicit(&p->gain, (float)event->value, memory_order_relaxed);
}

/* Sound from one event to the next, each with its own gain. */
static void take_sound(plugin *p, const float *const *sound, uint32_t from, uint32_t to) {
    meter_set_gain(&p->meter, atomic_load_explicit(&p->gain, memory_order_relaxed));
    meter_take(&p->meter, sound, from, to);
    share_values(p);
}

static void tell_values(plugin *p, const clap_output_events_t *to, uint32_t time) {
    clap_event_param_value_t event = {
        .header = {sizeof event, time, CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_PARAM_VALUE, 0},
        .note_id = -1,
        .port_index = -1,
        .channel = -1,
        .key = -1,
    };
    for (uint32_t k = 0; k < value_count(); k++) {
        const float value = p->meter.shown[k];
        event.param_id = VALUES + k, event.value = value;
        if (value != p->told[k] && to->try_push(to, &event.header)) p->told[k] = value;
    }
}

static bool has_channels(const clap_audio_buffer_t *one) {
    return one->data32 && one->channel_count >= (uint32_t)AMT(about)()->channels;
}

static clap_process_status process(const clap_plugin_t *one, const clap_process_t *block) {
    plugin *p = of(one);
    const clap_input_events_t *events = block->in_events;
    const uint32_t n = block->frames_count, count = events->size(events);
    if (!block->audio_inputs_count || !block->audio_outputs_count) return CLAP_PROCESS_ERROR;
    if (!has_channels(block->audio_inputs) || !has_channels(block->audio_outputs))
        return CLAP_PROCESS_ERROR;
    const float *const *sound = (const float *const *)block->audio_inputs->data32;
    uint32_t done = 0;
    for (uint32_t k = 0; k <= count; k++) {
        const clap_event_header_t *event = k < count ? events->get(events, k) : NULL;
        const uint32_t until = event && event->time < n ? event->time : n;
        if (until > done) take_sound(p, sound, done, until), done = until;
        if (event) take_event(p, event);
    }
    pass_through(sound, block->audio_outputs->data32, n);
    block->audio_outputs->constant_mask = block->audio_inputs->constant_mask;
    tell_values(p, block->out_events, n ? n - 1 : 0);
    return CLAP_PROCESS_CONTINUE;
}

static uint32_t count_ports(const clap_plugin_t *one, bool is_input) {
    (void)one, (void)is_input;
    return 1;
}

static bool port_info(const clap_plugin_t *one, uint32_t index, bool is_input,
                      clap_audio_port_info_t *info) {
    const int32_t channels = AMT(about)()->channels;
    (void)one, (void)is_input;
    if (index) return false;
    *info = (clap_audio_port_info_t){
        .name = "main",
        .flags = CLAP_AUDIO_PORT_IS_MAIN,
        .channel_count = (uint32_t)channels,
        .port_type = channels == 1 ? CLAP_PORT_MONO : channels == 2 ? CLAP_PORT_STEREO : NULL,
    };
    return true;
}

static uint32_t count_parameters(const clap_plugin_t *one) {
    (void)one;
    return VALUES + value_count();
}

static bool parameter_info(const clap_plugin_t *one, uint32_t index, clap_param_info_t *info) {
    (void)one;
    if (index >= VALUES + value_count()) return false;
    *info = (clap_param_info_t){.id = index};
    if (index == GAIN) {
        snprintf(info->name, sizeof info->name, "%s for full scale", AMT(about)()->input_unit);
        info->flags = CLAP_PARAM_IS_AUTOMATABLE; /* it holds from the sample of its event on */
        info->min_value = LEAST_GAIN, info->max_value = MOST_GAIN, info->default_value = 1.0;
        return true;
    }
    const uint32_t k = index - VALUES;
    snprintf(info->name, sizeof info->name, "%s", value_column(k).name);
    info->flags = CLAP_PARAM_IS_READONLY;
    info->min_value = info->default_value = least_of(k), info->max_value = most_of(k);
    return true;
}

static bool value_of(const clap_plugin_t *one, clap_id id, double *value) {
    plugin *p = of(one);
    if (id >= VALUES + value_count()) return false;
    _Atomic float *from = id == GAIN ? &p->gain : p->values + (id - VALUES);
    *value = atomic_load_explicit(from, memory_order_relaxed);
    return true;
}

static bool value_to_text(const clap_plugin_t *one, clap_id id, double value, char *text,
                          uint32_t room) {
    (void)one;
    if (id >= VALUES + value_count()) return false;
    if (id == GAIN) return snprintf(text, room, "%.6g", value) > 0;
    const char *unit = value_column(id - VALUES).unit;
    if (!is_level(id - VALUES)) return snprintf(text, room, "%.4g %s", value, unit) > 0;
    if (value <= -MOST_LEVEL) return snprintf(text, room, "-- %s", unit) > 0;
    return snprintf(text, room, "%.1f %s", value, unit) > 0;
}

static bool text_to_value(const clap_plugin_t *one, clap_id id, const char *text, double *value) {
    (void)one;
    if (id >= VALUES + value_count()) return false;
    char *end;
    *value = strtod(text, &end);
    if (end != text) return isfinite(*value);
    *value = -MOST_LEVEL;
    return id != GAIN && is_level(id - VALUES) && !strncmp(text, "--", 2);
}

static void flush(const clap_plugin_t *one, const clap_input_events_t *in,
                  const clap_output_events_t *out) {
    (void)out;
    for (uint32_t k = 0; k < in->size(in); k++) take_event(of(one), in->get(in, k));
}

/* What a project stores; a processor of another byte order has another plug-in. */
typedef struct {
    char magic[4];
    float gain;
} saved;

static bool save(const clap_plugin_t *one, const clap_ostream_t *to) {
    saved state = {{'A', 'M', 'T', 'G'}, atomic_load(&of(one)->gain)};
    for (uint64_t done = 0; done < sizeof state;) {
        int64_t written = to->write(to, (const char *)&state + done, sizeof state - done);
        if (written <= 0) return false;
        done += (uint64_t)written;
    }
    return true;
}

static bool load(const clap_plugin_t *one, const clap_istream_t *from) {
    plugin *p = of(one);
    saved state;
    for (uint64_t done = 0; done < sizeof state;) {
        int64_t read = from->read(from, (char *)&state + done, sizeof state - done);
        if (read <= 0) return false;
        done += (uint64_t)read;
    }
    if (memcmp(state.magic, "AMTG", 4)) return false;
    if (!(state.gain >= (float)LEAST_GAIN && state.gain <= (float)MOST_GAIN)) return false;
    atomic_store(&p->gain, state.gain);
    const clap_host_params_t *host = p->host->get_extension(p->host, CLAP_EXT_PARAMS);
    if (host) host->rescan(p->host, CLAP_PARAM_RESCAN_VALUES);
    return true;
}

static const void *extension(const clap_plugin_t *one, const char *id) {
    static const clap_plugin_audio_ports_t ports = {count_ports, port_info};
    static const clap_plugin_params_t parameters = {count_parameters, parameter_info, value_of,
                                                    value_to_text,    text_to_value,  flush};
    static const clap_plugin_state_t state = {save, load};
    (void)one;
    if (!strcmp(id, CLAP_EXT_AUDIO_PORTS)) return &ports;
    if (!strcmp(id, CLAP_EXT_PARAMS)) return &parameters;
    return strcmp(id, CLAP_EXT_STATE) ? NULL : (const void *)&state;
}

static uint32_t count_plugins(const clap_plugin_factory_t *factory) {
    (void)factory;
    return 1;
}

static const clap_plugin_descriptor_t *describe(const clap_plugin_factory_t *factory,
                                                uint32_t index) {
    (void)factory;
    return index ? NULL : &descriptor;
}

static const clap_plugin_t *create(const clap_plugin_factory_t *factory, const clap_host_t *host,
                                   const char *id) {
    (void)factory;
    plugin *p = strcmp(id, plugin_id) ? NULL : calloc(1, sizeof *p);
    if (!p) return NULL;
    p->host = host;
    p->gain = 1.0f;
    p->plugin = (clap_plugin_t){&descriptor,      p,          init,  destroy, activate,  do_nothing,
                                start_processing, do_nothing, reset, process, extension, do_nothing};
    return &p->plugin;
}

static bool begin(const char *path) {
    const amt_info *about = AMT(about)();
    (void)path;
    write_id(plugin_id, sizeof plugin_id, "amt_stream.%s-%d-%d");
    write_id(plugin_name, sizeof plugin_name, "%s, %d ch, %d Hz");
    const char *version = strchr(about->version, ' ');
    descriptor.version = version ? version + 1 : about->version;
    features[1] = about->channels == 1   ? CLAP_PLUGIN_FEATURE_MONO
                  : about->channels == 2 ? CLAP_PLUGIN_FEATURE_STEREO
                                         : CLAP_PLUGIN_FEATURE_SURROUND;
    return true;
}

static void end(void) {}

static const void *factory_of(const char *id) {
    static const clap_plugin_factory_t factory = {count_plugins, describe, create};
    return strcmp(id, CLAP_PLUGIN_FACTORY_ID) ? NULL : &factory;
}

CLAP_EXPORT const clap_plugin_entry_t clap_entry = {CLAP_VERSION_INIT, begin, end, factory_of};
