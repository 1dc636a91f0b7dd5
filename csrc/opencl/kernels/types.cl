/* types.cl: the names of types, for programs without math helpers (the others have them from math.h). */
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define TP_HAVE_F64 1
typedef double tp_f64;
typedef double2 tp_c128;
#endif
typedef bool tp_bool;
typedef uchar tp_u8;
typedef ushort tp_u16;
typedef uint tp_u32;
typedef ulong tp_u64;
typedef char tp_i8;
typedef short tp_i16;
typedef int tp_i32;
typedef long tp_i64;
typedef float tp_f32;
typedef float2 tp_c64;
#define TP_FN static inline __attribute__((always_inline))
