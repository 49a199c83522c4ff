/* A small host of CLAP: passes a sound through a plug-in in one thread, while the main thread reads
   its parameters and stores its state; prints what it heard of them after each block.

       clap_host PLUGIN SAMPLES [SAMPLE:GAIN ...] < sound

   SAMPLES: of a block; SAMPLE:GAIN: the gain from that sample of the whole sound on */
#include "amt_clap.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #what), exit(1)))

/* As in CLAP's own headers on a processor of 64 bits. */
_Static_assert(sizeof(clap_plugin_descriptor_t) == 88 && sizeof(clap_plugin_t) == 96, "plugin.h");
_Static_assert(sizeof(clap_event_param_value_t) == 56, "events.h");
_Static_assert(offsetof(clap_event_param_value_t, value) == 48, "events.h");
_Static_assert(sizeof(clap_audio_buffer_t) == 32, "audio-buffer.h");
_Static_assert(sizeof(clap_process_t) == 64, "process.h");
_Static_assert(offsetof(clap_process_t, in_events) == 48, "process.h");
_Static_assert(sizeof(clap_audio_port_info_t) == 288, "ext/audio-ports.h");
_Static_assert(offsetof(clap_audio_port_info_t, port_type) == 272, "ext/audio-ports.h");
_Static_assert(sizeof(clap_param_info_t) == 1320, "ext/params.h");
_Static_assert(offsetof(clap_param_info_t, min_value) == 1296, "ext/params.h");

enum { MOST_PARAMETERS = 512, MOST_GAINS = 8, BYTES = 64 };

static const clap_plugin_t *plugin;
static const clap_plugin_params_t *params;
static uint32_t parameters, channels, block, gains;
static size_t length, blocks;
static float *sound; /* (channel, time) */
static double *rows; /* (block, parameter) */
static double heard[MOST_PARAMETERS];
static clap_event_param_value_t events[MOST_GAINS], due[MOST_GAINS];
static uint32_t due_count, rescans;
static atomic_int running, allocations;
static _Thread_local int counted;

#ifndef __SANITIZE_THREAD__ /* which has an allocator of its own */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
void *malloc(size_t bytes) {
    allocations += counted;
    return __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes) {
    allocations += counted;
    return __libc_calloc(n, bytes);
}
void *realloc(void *at, size_t bytes) {
    allocations += counted;
    return __libc_realloc(at, bytes);
}
void free(void *at) {
    allocations += counted;
    __libc_free(at);
}
#endif

static void rescan(const clap_host_t *host, uint32_t flags) {
    (void)host;
    rescans += flags == CLAP_PARAM_RESCAN_VALUES;
}

static const void *extension(const clap_host_t *host, const char *id) {
    static const clap_host_params_t one = {rescan, NULL, NULL};
    (void)host;
    return strcmp(id, CLAP_EXT_PARAMS) ? NULL : &one;
}

static void ignore(const clap_host_t *host) { (void)host; }

static const clap_host_t host = {CLAP_VERSION_INIT, NULL,      "tests", "", "", "1.0",
                                 extension,         ignore, ignore,  ignore};

static uint32_t count_due(const clap_input_events_t *list) { return (void)list, due_count; }

static const clap_event_header_t *get_due(const clap_input_events_t *list, uint32_t index) {
    return (void)list, &due[index].header;
}

static bool hear(const clap_output_events_t *list, const clap_event_header_t *header) {
    const clap_event_param_value_t *event = (const void *)header;
    (void)list;
    CHECK(header->space_id == CLAP_CORE_EVENT_SPACE_ID && header->type == CLAP_EVENT_PARAM_VALUE);
    CHECK(header->size == sizeof *event && header->time < block);
    CHECK(event->param_id > 0 && event->param_id < parameters);
    heard[event->param_id] = event->value;
    return true;
}

static const clap_input_events_t in_events = {NULL, count_due, get_due};
static const clap_output_events_t out_events = {NULL, hear};

static void take_gains_due(size_t from, size_t to) {
    due_count = 0;
    for (uint32_t k = 0; k < gains; k++)
        if (events[k].header.time >= from && events[k].header.time < to) {
            due[due_count] = events[k];
            due[due_count++].header.time -= (uint32_t)from;
        }
}

/* In one block the sound stays where it is; in the next one it goes to another place. */
static void pass_block(size_t k, float **in, float **elsewhere, float *copy) {
    const size_t from = k * block, n = length - from < block ? length - from : block;
    float **out = k % 2 ? in : elsewhere;
    for (uint32_t c = 0; c < channels; c++) {
        in[c] = sound + c * length + from;
        memcpy(copy + c * block, in[c], n * sizeof(float));
    }
    clap_audio_buffer_t taken = {in, NULL, channels, 0, 0}, given = {out, NULL, channels, 0, 0};
    take_gains_due(from, from + n);
    clap_process_t process = {(int64_t)from, (uint32_t)n, NULL, &taken, &given, 1,
                              1,             &in_events,  &out_events};
    counted = 1;
    clap_process_status status = plugin->process(plugin, &process);
    counted = 0;
    CHECK(status == CLAP_PROCESS_CONTINUE);
    for (uint32_t c = 0; c < channels; c++)
        CHECK(!memcmp(out[c], copy + c * block, n * sizeof(float)));
    taken.channel_count -= 1;
    CHECK(plugin->process(plugin, &process) == CLAP_PROCESS_ERROR);
    memcpy(rows + k * parameters, heard, parameters * sizeof *heard);
}

static void *pass_sound(void *none) {
    float **in = calloc(channels, sizeof *in), **elsewhere = calloc(channels, sizeof *elsewhere);
    float *copy = calloc((size_t)channels * block, sizeof *copy);
    for (uint32_t c = 0; c < channels; c++) elsewhere[c] = calloc(block, sizeof(float));
    CHECK(plugin->start_processing(plugin));
    for (size_t k = 0; k < blocks; k++) pass_block(k, in, elsewhere, copy);
    plugin->stop_processing(plugin);
    for (uint32_t c = 0; c < channels; c++) free(elsewhere[c]);
    free(in), free(elsewhere), free(copy);
    running = 0;
    return none;
}

/* A file of a project, of which a host writes and reads a few bytes at a time. */
typedef struct {
    uint8_t bytes[BYTES];
    uint64_t size, read;
} project;

static int64_t write_some(const clap_ostream_t *to, const void *from, uint64_t size) {
    project *p = to->ctx;
    if (size > 3) size = 3;
    CHECK(p->size + size <= BYTES);
    memcpy(p->bytes + p->size, from, size);
    p->size += size;
    return (int64_t)size;
}

static int64_t read_some(const clap_istream_t *from, void *to, uint64_t size) {
    project *p = from->ctx;
    if (size > 3) size = 3;
    if (size > p->size - p->read) size = p->size - p->read;
    memcpy(to, p->bytes + p->read, size);
    p->read += size;
    return (int64_t)size;
}

static project saved(const clap_plugin_t *one) {
    const clap_plugin_state_t *state = one->get_extension(one, CLAP_EXT_STATE);
    project p = {.size = 0};
    clap_ostream_t stream = {&p, write_some};
    CHECK(state->save(one, &stream));
    return p;
}

static bool load(const clap_plugin_t *one, project p) {
    const clap_plugin_state_t *state = one->get_extension(one, CLAP_EXT_STATE);
    clap_istream_t stream = {&p, read_some};
    return state->load(one, &stream);
}

static double value_of(const clap_plugin_t *one, uint32_t id) {
    double value = NAN;
    CHECK(params->get_value(one, id, &value));
    return value;
}

static void read_parameters(void) {
    for (uint32_t id = 0; id < parameters; id++) {
        clap_param_info_t info;
        char text[64], again[64];
        CHECK(params->get_info(plugin, id, &info) && info.id == id);
        double value = value_of(plugin, id), known;
        CHECK(value >= info.min_value && value <= info.max_value);
        CHECK(params->value_to_text(plugin, id, value, text, sizeof text));
        CHECK(params->text_to_value(plugin, id, text, &known));
        CHECK(params->value_to_text(plugin, id, known, again, sizeof again) && !strcmp(text, again));
    }
}

static void measure(double rate) {
    pthread_t thread;
    CHECK(!plugin->activate(plugin, rate - 1, 1, block) && plugin->activate(plugin, rate, 1, block));
    for (uint32_t id = 1; id < parameters; id++) heard[id] = value_of(plugin, id);
    running = 1;
    CHECK(!pthread_create(&thread, NULL, pass_sound, NULL));
    do {
        read_parameters();
        saved(plugin);
    } while (running);
    CHECK(!pthread_join(thread, NULL));
    for (uint32_t id = 1; id < parameters; id++) CHECK(value_of(plugin, id) == heard[id]);
    plugin->deactivate(plugin);
}

/* Another instance has the gain of a project, and refuses what is no project. */
static void restore(const clap_plugin_factory_t *factory, const char *id) {
    const clap_plugin_t *other = factory->create_plugin(factory, &host, id);
    CHECK(other && other->init(other) && value_of(other, 0) == 1.0);
    project wrong = saved(plugin), cut = wrong;
    wrong.bytes[0] ^= 1, cut.size -= 1;
    CHECK(!load(other, wrong) && !load(other, cut) && value_of(other, 0) == 1.0 && !rescans);
    CHECK(load(other, saved(plugin)) && value_of(other, 0) == value_of(plugin, 0) && rescans == 1);
    due[0] = events[0], due_count = gains ? 1 : 0;
    if (due_count) due[0].value = 0.25;
    params->flush(other, &in_events, &out_events);
    CHECK(!due_count || value_of(other, 0) == 0.25);
    other->destroy(other);
}

static void read_sound(void) {
    size_t room = 1 << 22, n = 0, k;
    float *all = malloc(room);
    while ((k = fread(all + n, sizeof(float), room / sizeof(float) - n, stdin)) > 0) n += k;
    length = n / channels, blocks = (length + block - 1) / block;
    sound = malloc(n * sizeof(float));
    for (k = 0; k < length * channels; k++) sound[k % channels * length + k / channels] = all[k];
    free(all);
}

static void describe(const clap_plugin_descriptor_t *one) {
    printf("%s|%s|%s|%s|%s\n", one->id, one->name, one->version, one->features[0],
           one->features[1]);
    for (uint32_t k = 0; k < parameters; k++) {
        clap_param_info_t info;
        CHECK(params->get_info(plugin, k, &info));
        printf("%s|%u|%g|%g|%g\n", info.name, info.flags, info.min_value, info.max_value,
               info.default_value);
    }
    printf("\n");
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    block = (uint32_t)atoi(arguments[2]);
    for (int k = 3; k < count; k++) {
        unsigned sample;
        double gain;
        CHECK(sscanf(arguments[k], "%u:%lf", &sample, &gain) == 2);
        events[gains++] = (clap_event_param_value_t){
            .header = {sizeof *events, sample, CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_PARAM_VALUE, 0},
            .value = gain};
    }
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    const clap_plugin_entry_t *entry = dlsym(library, "clap_entry");
    CHECK(entry && entry->clap_version.major == 1 && entry->init(arguments[1]));
    CHECK(!dlsym(library, "amt_process")); /* another model has the same names */
    const clap_plugin_factory_t *factory = entry->get_factory(CLAP_PLUGIN_FACTORY_ID);
    CHECK(factory && factory->get_plugin_count(factory) == 1 && !entry->get_factory("other"));
    const clap_plugin_descriptor_t *one = factory->get_plugin_descriptor(factory, 0);
    CHECK(!factory->create_plugin(factory, &host, "other"));
    counted = 1;
    plugin = factory->create_plugin(factory, &host, one->id);
    CHECK(plugin && plugin->init(plugin));
    counted = 0;
#ifndef __SANITIZE_THREAD__
    CHECK(allocations);
#endif
    allocations = 0;
    params = plugin->get_extension(plugin, CLAP_EXT_PARAMS);
    parameters = params->count(plugin);
    CHECK(parameters <= MOST_PARAMETERS);
    const clap_plugin_audio_ports_t *ports = plugin->get_extension(plugin, CLAP_EXT_AUDIO_PORTS);
    clap_audio_port_info_t port;
    CHECK(ports->count(plugin, true) == 1 && ports->get(plugin, 0, true, &port));
    CHECK(port.flags & CLAP_AUDIO_PORT_IS_MAIN);
    channels = port.channel_count;
    CHECK(ports->count(plugin, false) == 1 && ports->get(plugin, 0, false, &port));
    CHECK(port.channel_count == channels);
    read_sound();
    describe(one);
    rows = calloc(blocks * parameters, sizeof *rows);
    double *first = calloc(blocks * parameters, sizeof *rows);
    measure(48000);
    memcpy(first, rows, blocks * parameters * sizeof *rows);
    measure(48000); /* anew */
    CHECK(!memcmp(first, rows, blocks * parameters * sizeof *rows));
    CHECK(!allocations);
    restore(factory, one->id);
    for (size_t k = 0; k < blocks * parameters; k++)
        printf("%.9g%c", rows[k], (k + 1) % parameters ? ' ' : '\n');
    plugin->destroy(plugin);
    entry->deinit();
    free(sound), free(rows), free(first);
    return dlclose(library);
}
