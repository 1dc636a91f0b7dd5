/* element.c: see element.h. */
#include "opencl/kernels/element.h"

#include "prim/program.h"

#include <string.h>

static const char *const types[TP_NUM_DTYPES] = {
    [TP_BOOL] = "tp_bool",       [TP_UINT8] = "tp_u8",    [TP_UINT16] = "tp_u16",  [TP_UINT32] = "tp_u32",
    [TP_UINT64] = "tp_u64",      [TP_INT8] = "tp_i8",     [TP_INT16] = "tp_i16",   [TP_INT32] = "tp_i32",
    [TP_INT64] = "tp_i64",       [TP_FLOAT32] = "tp_f32", [TP_FLOAT64] = "tp_f64", [TP_COMPLEX64] = "tp_c64",
    [TP_COMPLEX128] = "tp_c128",
};

const char *tp_cl_type(tp_dtype d) { return types[d]; }

const char *tp_cl_storage(tp_dtype d) {
    if (d == TP_BOOL) return "uchar";
    if (tp_is_half_dtype(d)) return "ushort";
    return types[tp_moved_dtype(d)];
}

/* Kept in memory in fewer bits than it is computed in: load_<suffix> and store_<suffix> of common.cl convert. */
static bool is_narrow(tp_dtype d) { return tp_compute_dtype(d) != d; }

/* A real or complex value of an OpenCL C type as another. */
static void add_cast(tp_text *s, tp_dtype from, tp_dtype to, const char *text) {
    bool small = tp_itemsize(to) < 4 || to == TP_INT32;
    if (from == to) {
        tp_text_add(s, "%s", text);
    } else if (tp_is_complex_dtype(from)) {
        tp_dtype real = tp_to_real_dtype(from);
        if (to == TP_BOOL) tp_text_add(s, "(%s.x != 0 || %s.y != 0)", text, text);
        else if (tp_is_complex_dtype(to)) tp_text_add(s, "(%s)(%s.x, %s.y)", types[to], text, text);
        else {
            tp_autotext part = {0};
            tp_text_add(&part, "%s.x", text);
            add_cast(s, real, to, part.text ? part.text : "");
        }
    } else if (to == TP_BOOL) {
        tp_text_add(s, "(%s != 0)", text);
    } else if (tp_is_complex_dtype(to)) {
        tp_text_add(s, "(%s)((%s)(%s), 0)", types[to], types[tp_to_real_dtype(to)], text);
    } else if (tp_is_floating_dtype(from) && tp_is_integral_dtype(to)) {
        if (to == TP_UINT64) tp_text_add(s, "to_ulong(%s)", text);
        else tp_text_add(s, "(%s)convert_%s_sat_rtz(%s)", types[to], small ? "int" : "long", text);
    } else {
        tp_text_add(s, "(%s)%s", types[to], text);
    }
}

void tp_cl_add_load(tp_text *s, tp_dtype from, tp_dtype to, const char *text) {
    tp_autotext value = {0};
    if (from == to && is_narrow(to)) return tp_text_add(s, "%s", text); /* bits that are only moved */
    if (from == TP_BOOL) tp_text_add(&value, "(%s != 0)", text);
    else if (is_narrow(from)) tp_text_add(&value, "load_%s(%s)", tp_dtype_suffix(from), text);
    else tp_text_add(&value, "%s", text);
    add_cast(s, tp_compute_dtype(from), to, value.text ? value.text : "");
}

void tp_cl_add_store(tp_text *s, tp_dtype from, tp_dtype to, const char *text) {
    tp_autotext value = {0};
    if (from == to && is_narrow(to)) return tp_text_add(s, "%s", text);
    add_cast(&value, from, tp_compute_dtype(to), text);
    const char *v = value.text ? value.text : "";
    if (to == TP_BOOL) tp_text_add(s, "(uchar)(%s ? 1 : 0)", v);
    else if (is_narrow(to)) tp_text_add(s, "store_%s(%s)", tp_dtype_suffix(to), v);
    else tp_text_add(s, "%s", v);
}

void tp_cl_define(tp_text *s, const char *name, tp_dtype stored, tp_dtype compute) {
    tp_text_add(s, "#define %s_S %s\n#define %s_T %s\n#define %s_LOAD(v) ", name, tp_cl_storage(stored), name,
                types[compute], name);
    tp_cl_add_load(s, stored, compute, "(v)");
    tp_text_add(s, "\n#define %s_STORE(v) ", name);
    tp_cl_add_store(s, compute, stored, "(v)");
    tp_text_add(s, "\n");
}

void tp_cl_define_vectors(tp_text *s, const char *name, tp_dtype stored, int width) {
    tp_text_add(s, "#define %s_V %s%d\n", name, stored == TP_FLOAT64 ? "double" : "float", width);
    if (stored == TP_FLOAT16) {
        tp_text_add(s, "#define %s_VLOAD(p) vload_half%d(0, (__global const half *)(p))\n", name, width);
        tp_text_add(s, "#define %s_VSTORE(v, p) vstore_half%d_rte(v, 0, (__global half *)(p))\n", name, width);
    } else if (stored == TP_BFLOAT16) {
        tp_text_add(s, "#define %s_VLOAD(p) as_float%d(convert_uint%d(vload%d(0, p)) << 16)\n", name, width, width,
                    width);
        tp_text_add(s, "#define %s_VSTORE(v, p) vstore%d(STORE_BF16_VECTOR(v, %d), 0, p)\n", name, width, width);
    } else {
        tp_text_add(s, "#define %s_VLOAD(p) vload%d(0, p)\n#define %s_VSTORE(v, p) vstore%d(v, 0, p)\n", name, width,
                    name, width);
    }
}
