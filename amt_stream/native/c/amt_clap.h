/* What clap.c needs of the binary interface of CLAP 1.2, the CLever Audio Plug-in: names and layouts
   as https://github.com/free-audio/clap publishes them, where their meaning is explained. A program
   may include CLAP's own headers instead. */
#ifndef AMT_CLAP_H
#define AMT_CLAP_H
#include <stdbool.h>
#include <stdint.h>

#define CLAP_VERSION_INIT {1, 2, 0}
#define CLAP_EXPORT __attribute__((visibility("default")))
#define CLAP_PLUGIN_FACTORY_ID "clap.plugin-factory"
#define CLAP_EXT_AUDIO_PORTS "clap.audio-ports"
#define CLAP_EXT_PARAMS "clap.params"
#define CLAP_EXT_STATE "clap.state"
#define CLAP_PORT_MONO "mono"
#define CLAP_PORT_STEREO "stereo"
#define CLAP_PLUGIN_FEATURE_ANALYZER "analyzer"
#define CLAP_PLUGIN_FEATURE_MONO "mono"
#define CLAP_PLUGIN_FEATURE_STEREO "stereo"
#define CLAP_PLUGIN_FEATURE_SURROUND "surround"

enum { CLAP_NAME_SIZE = 256, CLAP_PATH_SIZE = 1024 };
enum { CLAP_PROCESS_ERROR = 0, CLAP_PROCESS_CONTINUE = 1 };
enum { CLAP_CORE_EVENT_SPACE_ID = 0, CLAP_EVENT_PARAM_VALUE = 5 };
enum { CLAP_AUDIO_PORT_IS_MAIN = 1 };
enum { CLAP_PARAM_IS_READONLY = 1 << 3, CLAP_PARAM_IS_AUTOMATABLE = 1 << 5 };
enum { CLAP_PARAM_RESCAN_VALUES = 1 };

typedef uint32_t clap_id;
typedef int32_t clap_process_status;

typedef struct clap_version {
    uint32_t major, minor, revision;
} clap_version_t;

typedef struct clap_host {
    clap_version_t clap_version;
    void *host_data;
    const char *name, *vendor, *url, *version;
    const void *(*get_extension)(const struct clap_host *, const char *id);
    void (*request_restart)(const struct clap_host *);
    void (*request_process)(const struct clap_host *);
    void (*request_callback)(const struct clap_host *);
} clap_host_t;

typedef struct clap_event_header {
    uint32_t size, time;
    uint16_t space_id, type;
    uint32_t flags;
} clap_event_header_t;

typedef struct clap_event_param_value {
    clap_event_header_t header;
    clap_id param_id;
    void *cookie;
    int32_t note_id;
    int16_t port_index, channel, key;
    double value;
} clap_event_param_value_t;

typedef struct clap_input_events {
    void *ctx;
    uint32_t (*size)(const struct clap_input_events *);
    const clap_event_header_t *(*get)(const struct clap_input_events *, uint32_t index);
} clap_input_events_t;

typedef struct clap_output_events {
    void *ctx;
    bool (*try_push)(const struct clap_output_events *, const clap_event_header_t *);
} clap_output_events_t;

typedef struct clap_audio_buffer {
    float **data32;
    double **data64;
    uint32_t channel_count, latency;
    uint64_t constant_mask;
} clap_audio_buffer_t;

typedef struct clap_process {
    int64_t steady_time;
    uint32_t frames_count;
    const void *transport;
    const clap_audio_buffer_t *audio_inputs;
    clap_audio_buffer_t *audio_outputs;
    uint32_t audio_inputs_count, audio_outputs_count;
    const clap_input_events_t *in_events;
    const clap_output_events_t *out_events;
} clap_process_t;

typedef struct clap_plugin_descriptor {
    clap_version_t clap_version;
    const char *id, *name, *vendor, *url, *manual_url, *support_url, *version, *description;
    const char *const *features;
} clap_plugin_descriptor_t;

typedef struct clap_plugin {
    const clap_plugin_descriptor_t *desc;
    void *plugin_data;
    bool (*init)(const struct clap_plugin *);
    void (*destroy)(const struct clap_plugin *);
    bool (*activate)(const struct clap_plugin *, double rate, uint32_t least, uint32_t most);
    void (*deactivate)(const struct clap_plugin *);
    bool (*start_processing)(const struct clap_plugin *);
    void (*stop_processing)(const struct clap_plugin *);
    void (*reset)(const struct clap_plugin *);
    clap_process_status (*process)(const struct clap_plugin *, const clap_process_t *);
    const void *(*get_extension)(const struct clap_plugin *, const char *id);
    void (*on_main_thread)(const struct clap_plugin *);
} clap_plugin_t;

typedef struct clap_plugin_factory {
    uint32_t (*get_plugin_count)(const struct clap_plugin_factory *);
    const clap_plugin_descriptor_t *(*get_plugin_descriptor)(const struct clap_plugin_factory *,
                                                             uint32_t index);
    const clap_plugin_t *(*create_plugin)(const struct clap_plugin_factory *, const clap_host_t *,
                                          const char *id);
} clap_plugin_factory_t;

typedef struct clap_plugin_entry {
    clap_version_t clap_version;
    bool (*init)(const char *path);
    void (*deinit)(void);
    const void *(*get_factory)(const char *id);
} clap_plugin_entry_t;

typedef struct clap_audio_port_info {
    clap_id id;
    char name[CLAP_NAME_SIZE];
    uint32_t flags, channel_count;
    const char *port_type;
    clap_id in_place_pair;
} clap_audio_port_info_t;

typedef struct clap_plugin_audio_ports {
    uint32_t (*count)(const clap_plugin_t *, bool is_input);
    bool (*get)(const clap_plugin_t *, uint32_t index, bool is_input, clap_audio_port_info_t *);
} clap_plugin_audio_ports_t;

typedef struct clap_param_info {
    clap_id id;
    uint32_t flags;
    void *cookie;
    char name[CLAP_NAME_SIZE], module[CLAP_PATH_SIZE];
    double min_value, max_value, default_value;
} clap_param_info_t;

typedef struct clap_plugin_params {
    uint32_t (*count)(const clap_plugin_t *);
    bool (*get_info)(const clap_plugin_t *, uint32_t index, clap_param_info_t *);
    bool (*get_value)(const clap_plugin_t *, clap_id, double *);
    bool (*value_to_text)(const clap_plugin_t *, clap_id, double, char *text, uint32_t room);
    bool (*text_to_value)(const clap_plugin_t *, clap_id, const char *text, double *);
    void (*flush)(const clap_plugin_t *, const clap_input_events_t *, const clap_output_events_t *);
} clap_plugin_params_t;

typedef struct clap_host_params {
    void (*rescan)(const clap_host_t *, uint32_t flags);
    void (*clear)(const clap_host_t *, clap_id, uint32_t flags);
    void (*request_flush)(const clap_host_t *);
} clap_host_params_t;

typedef struct clap_istream {
    void *ctx;
    int64_t (*read)(const struct clap_istream *, void *, uint64_t size);
} clap_istream_t;

typedef struct clap_ostream {
    void *ctx;
    int64_t (*write)(const struct clap_ostream *, const void *, uint64_t size);
} clap_ostream_t;

typedef struct clap_plugin_state {
    bool (*save)(const clap_plugin_t *, const clap_ostream_t *);
    bool (*load)(const clap_plugin_t *, const clap_istream_t *);
} clap_plugin_state_t;
#endif
