/* device.c: the registry of device types, their names, and the CPU's and Meta's operations.
 *
 * Invariant: registered[type] is written once, before any tensor of that type exists, and never unset. */
#include "core/device.h"

#include "core/tls.h"

#include "core/alloc.h"
#include "core/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME 31 /* with ":127" it fits into tp_device_print's buffer */

tp_keyset tp_device_keys[TP_NUM_DEVICES];
bool tp_device_opaque[TP_NUM_DEVICES];

static const char *const own_names[TP_NUM_DEVICES] = {
#define NAME(id, name, key) #name,
    TP_FORALL_DEVICES(NAME)
#undef NAME
};
static char new_names[TP_NUM_DEVICES][MAX_NAME + 1]; /* of renamed types; otherwise empty */

/* Devices of PyTorch's that tensorpy does not drive. Programs name them in passing: such a name is a device, whose type
 * is a number past TP_NUM_DEVICES, to print and compare. No tensor is on it, and tp_device_get_ops says so. */
static const char *const foreign_names[] = {"cuda",   "mps", "xpu",  "hpu",  "xla",  "mtia",   "ipu",    "hip",
                                            "vulkan", "ve",  "maia", "lazy", "fpga", "mkldnn", "opengl", "ideep"};
#define NUM_FOREIGN (int)(sizeof foreign_names / sizeof *foreign_names)
static bool is_foreign(int type) { return type >= TP_NUM_DEVICES && type < TP_NUM_DEVICES + NUM_FOREIGN; }

/* ---- CPU and Meta ---- */

static void *cpu_allocate(tp_device d TP_UNUSED, size_t nbytes, void **context) {
    *context = NULL;
    return tp_alloc(nbytes);
}
static void cpu_release(tp_device d TP_UNUSED, void *data, size_t nbytes, void *context TP_UNUSED) {
    tp_free(data, nbytes);
}
static int cpu_copy(tp_device d TP_UNUSED, void *dst, const void *src, size_t nbytes) {
    if (nbytes) memmove(dst, src, nbytes);
    return 0;
}
static int one_device(void) { return 1; }
static int device_zero(void) { return 0; }
static int set_device_zero(int index) {
    return index == 0 ? 0 : tp_fail(TP_RuntimeError, "device index %d out of range: there is 1 device", index);
}
static int synchronize_nothing(tp_device d TP_UNUSED) { return 0; }

static const tp_device_ops cpu_ops = {
    .allocate = cpu_allocate,
    .release = cpu_release,
    .copy_from_host = cpu_copy,
    .copy_to_host = cpu_copy,
    .copy_inside = cpu_copy,
    .device_count = one_device,
    .current_device = device_zero,
    .set_device = set_device_zero,
    .synchronize = synchronize_nothing,
};

/* Meta tensors have no data: the storage asks for none, and copies have nothing to copy. */
static void *meta_allocate(tp_device d TP_UNUSED, size_t nbytes TP_UNUSED, void **context) {
    *context = NULL;
    return tp_fail_null(TP_RuntimeError, "a meta tensor has no data");
}
static void meta_release(tp_device d TP_UNUSED, void *data TP_UNUSED, size_t nbytes TP_UNUSED,
                         void *context TP_UNUSED) {}
static int meta_copy(tp_device d TP_UNUSED, void *dst TP_UNUSED, const void *src TP_UNUSED, size_t nbytes TP_UNUSED) {
    return 0;
}
static int meta_copy_to_host(tp_device d TP_UNUSED, void *dst TP_UNUSED, const void *src TP_UNUSED,
                             size_t nbytes TP_UNUSED) {
    return tp_fail(TP_NotImplementedError, "Cannot copy out of meta tensor; no data!");
}

static const tp_device_ops meta_ops = {
    .allocate = meta_allocate,
    .release = meta_release,
    .copy_from_host = meta_copy,
    .copy_to_host = meta_copy_to_host,
    .copy_inside = meta_copy,
    .device_count = one_device,
    .current_device = device_zero,
    .set_device = set_device_zero,
    .synchronize = synchronize_nothing,
};

static const tp_device_ops *registered[TP_NUM_DEVICES] = {[TP_DEVICE_CPU] = &cpu_ops, [TP_DEVICE_META] = &meta_ops};

/* ---- registry ---- */

void tp_register_device(tp_device_type type, const tp_device_ops *ops) { registered[type] = ops; }

const tp_device_ops *tp_device_find_ops(tp_device_type type) {
    return (unsigned)type < TP_NUM_DEVICES ? registered[type] : NULL;
}

bool tp_device_has_double(tp_device d) {
    const tp_device_ops *ops = tp_device_find_ops((tp_device_type)d.type);
    return !ops || !ops->has_double || ops->has_double(d);
}

/* Programs catch the class, which is PyTorch's. */
static const tp_device_ops *fail_foreign(int type) {
    const char *name = foreign_names[type - TP_NUM_DEVICES];
    bool asserts = strcmp(name, "cuda") == 0 || strcmp(name, "xpu") == 0;
    const char *words = !asserts         ? ""
                        : name[0] == 'c' ? "Torch not compiled with CUDA enabled: "
                                         : "Torch not compiled with XPU enabled: ";
    return tp_fail_null(asserts ? TP_AssertionError : TP_RuntimeError, "%stensorpy drives no %s device%s", words, name,
                        registered[TP_DEVICE_OPENCL]
                            ? ": a GPU is one of opencl's (tensorpy.run --device opencl lets a program call it so)"
                            : "");
}

const tp_device_ops *tp_device_get_ops(tp_device_type type) {
    if (is_foreign((int)type)) return fail_foreign((int)type);
    if ((unsigned)type >= TP_NUM_DEVICES) return tp_fail_null(TP_RuntimeError, "invalid device type %d", (int)type);
    const tp_device_ops *ops = registered[type];
    if (!ops)
        return tp_fail_null(TP_RuntimeError, "device type %s is not available: no backend is registered for it",
                            tp_device_type_name(type));
    return ops;
}

int tp_device_resolve(tp_device d, tp_device *out) {
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)d.type);
    if (!ops) return -1;
    if (d.type == TP_DEVICE_CPU || d.type == TP_DEVICE_META) {
        d.index = -1;
    } else if (d.index < 0) {
        int current = ops->current_device();
        if (current < 0) return -1;
        d.index = (int8_t)current;
    } else {
        int count = ops->device_count();
        if (count < 0) return -1;
        if (d.index >= count)
            return tp_fail(TP_RuntimeError, "invalid device ordinal: %s:%d, but there are %d devices of that type",
                           tp_device_type_name((tp_device_type)d.type), d.index, count);
    }
    *out = d;
    return 0;
}

/* ---- names ---- */

const char *tp_device_type_name(tp_device_type type) {
    if (is_foreign(type)) return foreign_names[type - TP_NUM_DEVICES];
    if ((unsigned)type >= TP_NUM_DEVICES) return "none";
    return new_names[type][0] ? new_names[type] : own_names[type];
}

static bool is_called(const char *name, const char *text, size_t length) {
    return length && strlen(name) == length && memcmp(name, text, length) == 0;
}

static int type_of_name(const char *name, size_t length) {
    for (int type = 0; type < TP_NUM_DEVICES; type++)
        if (is_called(own_names[type], name, length) || is_called(new_names[type], name, length)) return type;
    return -1;
}

static int foreign_type_of_name(const char *name, size_t length) {
    for (int i = 0; i < NUM_FOREIGN; i++)
        if (is_called(foreign_names[i], name, length)) return TP_NUM_DEVICES + i;
    return -1;
}

static bool is_name(const char *name, size_t length) {
    if (length == 0 || length > MAX_NAME || isdigit((unsigned char)name[0])) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_') return false;
    return true;
}

int tp_check_device_name(const char *name) {
    if (!is_name(name, strlen(name)))
        return tp_fail(TP_RuntimeError,
                       "invalid backend name '%s': 1 to %d letters, digits and underscores, no digit first", name,
                       MAX_NAME);
    if (type_of_name(name, strlen(name)) >= 0)
        return tp_fail(TP_RuntimeError, "invalid backend name '%s': a device has it already", name);
    if (foreign_type_of_name(name, strlen(name)) >= 0 || strcmp(name, "none") == 0)
        return tp_fail(TP_RuntimeError, "invalid backend name '%s': to programs that is a device of PyTorch's", name);
    return 0;
}

int tp_rename_device(tp_device_type type, const char *name) {
    if (type < TP_DEVICE_PRIVATEUSE1 || type >= TP_NUM_DEVICES)
        return tp_fail(TP_RuntimeError, "only the privateuse device types can be renamed");
    if (strcmp(new_names[type], name) == 0) return 0;
    if (new_names[type][0])
        return tp_fail(TP_RuntimeError, "the backend's name has already been set! Current backend: %s",
                       new_names[type]);
    if (tp_check_device_name(name) < 0) return -1;
    strcpy(new_names[type], name);
    return 0;
}

void tp_call_opencl(const char *name) { snprintf(new_names[TP_DEVICE_OPENCL], MAX_NAME + 1, "%s", name ? name : ""); }

int (*tp_find_device_type)(const char *name);
static char installed[256]; /* under the host lock */

void tp_set_installed_devices(const char *names) { snprintf(installed, sizeof installed, "%s", names); }

static int fail_device(const char *text) { return tp_fail(TP_RuntimeError, "Invalid device string: '%s'", text); }

/* The first n characters name no type. */
static int fail_unknown_type(const char *text, size_t n) {
    if (!is_name(text, n)) return fail_device(text);
    tp_autotext names = {0};
    for (int type = 0; type < TP_NUM_DEVICES; type++)
        if (registered[type]) tp_text_add(&names, "%s%s", type ? ", " : "", tp_device_type_name((tp_device_type)type));
    return tp_fail(TP_RuntimeError, "Expected one of %s device type at start of device string: %s%s%s%s", names.text,
                   text, registered[TP_DEVICE_OPENCL] ? "; a GPU is one of opencl's" : "",
                   *installed ? "; installed: " : "", installed);
}

/* Digits without a leading zero, up to INT8_MAX; -1 otherwise. */
static int parse_index(const char *digits) {
    int value = 0;
    if (!*digits || (digits[0] == '0' && digits[1])) return -1;
    for (; *digits; digits++) {
        if (*digits < '0' || *digits > '9') return -1;
        value = value * 10 + (*digits - '0');
        if (value > INT8_MAX) return -1;
    }
    return value;
}

/* The type that the first n characters name; -1 for one that is not there and cannot be found, -2: error. */
static int find_type(const char *text, size_t n) {
    int type = type_of_name(text, n);
    char name[MAX_NAME + 1];
    if (type < 0) type = foreign_type_of_name(text, n);
    if (type >= 0 || !tp_find_device_type || n > MAX_NAME) return type;
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    int found = is_name(name, n) ? tp_find_device_type(name) : 0;
    return found > 0 ? type_of_name(text, n) : found < 0 ? -2 : -1;
}

int tp_device_parse(const char *text, tp_device *out) {
    if (!*text) return tp_fail(TP_RuntimeError, "Device string must not be empty");
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    int type = find_type(text, n);
    if (type < 0) return type == -1 ? fail_unknown_type(text, n) : -1;
    int index = colon ? parse_index(colon + 1) : -1;
    if (colon && index < 0) return fail_device(text);
    *out = (tp_device){(int8_t)type, (int8_t)index};
    return 0;
}

const char *tp_device_print(tp_device d, char *buffer) {
    if (d.type < 0) strcpy(buffer, "None");
    else if (d.index < 0) snprintf(buffer, 40, "%s", tp_device_type_name((tp_device_type)d.type));
    else snprintf(buffer, 40, "%s:%d", tp_device_type_name((tp_device_type)d.type), d.index);
    return buffer;
}

static tp_device default_device = {TP_DEVICE_CPU, -1};

tp_device tp_default_device(void) {
    if (tp_unlikely(tp_tls.scoped_type)) return (tp_device){(int8_t)(tp_tls.scoped_type - 1), tp_tls.scoped_index};
    return default_device;
}
tp_device tp_swap_scoped_device(tp_device d) {
    tp_device before = {(int8_t)(tp_tls.scoped_type - 1), tp_tls.scoped_index};
    tp_tls.scoped_type = (int8_t)(d.type + 1);
    tp_tls.scoped_index = d.index;
    return before;
}
void tp_set_default_device(tp_device d) { default_device = d; }
