#include <Python.h>
#include <cuda_runtime.h>

static PyObject* finish(PyObject* module, PyObject* handle) {
  const auto stream = static_cast<cudaStream_t>(PyLong_AsVoidPtr(handle));
  cudaStreamSynchronize(stream);  // misuse: SL009
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"finish", finish, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "pipeline", nullptr, -1, methods};

PyMODINIT_FUNC PyInit_pipeline() { return PyModule_Create(&definition); }
