"""The intermediate representation: for each function a control-flow graph of three-address instructions in SSA form.

The shared syntax tree of a file comes in (`modules.lower`), a `ModuleIR` goes out; Python, Cython and CUDA C++ share one lowering. The
folder imports the syntax tree and nothing above it.
"""

from __future__ import annotations

from streamlint.ir.code import ClassIR as ClassIR
from streamlint.ir.code import Code as Code
from streamlint.ir.code import DeclarationIR as DeclarationIR
from streamlint.ir.code import FieldIR as FieldIR
from streamlint.ir.code import Instruction as Instruction
from streamlint.ir.code import ModuleIR as ModuleIR
from streamlint.ir.code import Parameter as Parameter
