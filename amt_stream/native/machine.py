"""LLVM IR of kernels to one object file for a processor."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import llvmlite.binding as llvm

from amt_stream.core.errors import Refusal
from amt_stream.native.kernels import KernelCode


class Processor(NamedTuple):
    """A processor: its triple, its name to LLVM, and further features."""

    triple: str
    processor: str
    features: str = ""

    @property
    def is_web(self) -> bool:
        return self.triple.startswith("wasm")


MACHINES: Mapping[str, Processor] = {
    "x86-64-v3": Processor("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "x86-64": Processor("x86_64-unknown-linux-gnu", "x86-64"),
    "aarch64": Processor("aarch64-unknown-linux-gnu", "generic"),
    "x86-64-windows": Processor("x86_64-pc-windows-gnu", "x86-64"),
    "aarch64-macos": Processor("arm64-apple-macosx11.0.0", "apple-m1"),
    "wasm32": Processor(
        "wasm32-unknown-unknown", "", "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext"
    ),
}

_BODY = r"[^\n]*\{\n.*?^\}\n"
_COUNTS = "NRT_incref", "NRT_decref"


class UnknownCode(Refusal):
    """IR of another form than that of the numba this was written for."""


class Program(NamedTuple):
    """What an object holds.

    model: begins the names of all that can be seen of it: "zwicker_kernels" has the addresses of
        the kernels, and each function and constant is "zwicker_" and its name
    codes: kernels
    functions: kernels that C calls, by name: the entry, which calls those of `codes`, and others
    constants: bytes by name
    """

    model: str
    codes: Sequence[KernelCode]
    functions: Mapping[str, KernelCode]
    constants: Mapping[str, bytes]


def make_object(program: Program, target: Processor) -> bytes:
    """The object for a processor. Raises UnknownCode where the IR is of an unknown form."""
    machine = machine_for(target)
    return bytes(machine.emit_object(make_module(program, target, machine)))


def machine_for(target: Processor) -> llvm.TargetMachine:
    """LLVM's description of a processor."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.processor,
        features=target.features,
        opt=3,
        reloc="static" if target.is_web else "pic",
        codemodel="default",  # that of a compiler in memory has larger code
    )


def make_module(program: Program, target: Processor, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The program for a processor, optimized."""
    model, codes, functions, constants = program
    whole = _linked([*codes, *functions.values()], target, str(machine.target_data))
    # In LLVM, not in C: WebAssembly checks the type of what is called by address.
    table = ", ".join(f'ptr @"{code.symbol}"' for code in codes)
    lines = [str(whole), f"@{model}_kernels = constant [{len(codes)} x ptr] [{table}]"]
    for name, content in constants.items():
        text = "".join(f"\\{byte:02x}" for byte in content)
        lines.append(f'@{model}_{name} = constant [{len(content)} x i8] c"{text}", align 64')
    whole = llvm.parse_assembly("\n".join(lines) + "\n")
    for function in whole.functions:
        if not function.is_declaration:
            function.linkage = "internal"
    for name, code in functions.items():
        called = whole.get_function(code.symbol)
        called.linkage, called.name = "external", f"{model}_{name}"
    whole.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    options.loop_interleaving = not target.is_web
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(whole, passes)
    return whole


def _linked(codes: Sequence[KernelCode], target: Processor, layout: str) -> llvm.ModuleRef:
    """One module of all; functions that several have, such as those of numba, are private."""
    whole = None
    for symbol, text in dict(codes).items():
        module = llvm.parse_assembly(_portable(text, target, layout))
        for one in (*module.functions, *module.global_variables):
            if not one.is_declaration and one.name != symbol:
                one.linkage = "internal"
        module.verify()
        if whole is None:
            whole = module
        else:
            whole.link_in(module)
    assert whole is not None
    return whole


def _portable(text: str, target: Processor, layout: str) -> str:
    """The IR without what belongs to this process, this machine or Python."""
    for name in _COUNTS:
        text, count = re.subn(rf"(?ms)^define[^\n]*@{name}\({_BODY}", "", text)
        if count:
            text += f"\ndeclare void @{name}(ptr)\n"
    # Wrappers for Python, and what exceptions would say, which has paths of this machine.
    text = re.sub(rf"(?ms)^define[^\n]*@(?:_ZN7cpython|cfunc\.){_BODY}", "", text)
    text = re.sub(
        r"(?m)^(@\.const\.pickle(?:data|buf)\S* = \w+ constant )(\[[^\]]*\]|\{[^}]*\}) "
        r'(?:c"[^\n]*?"|\{[^\n]*?\})(?=, align|$)',
        r"\1\2 zeroinitializer",
        text,
    )
    text = re.sub(r"= common (?:local_unnamed_addr )?global", "= internal global", text)
    text = re.sub(r'"(?:target-cpu|target-features|tune-cpu)"="[^"]*"', "", text)
    text = re.sub(r'target triple = ".*"', f'target triple = "{target.triple}"', text)
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{layout}"', text)
    for kind, suffix, bits in (("double", "", 64), ("float", "f", 32)):
        # A call of the library; the instruction gives the same.
        named = f"{kind} @llvm.sqrt.f{bits}({kind})"
        text = re.sub(rf"(?m)^declare {kind} @sqrt{suffix}\([^\n]*$", f"declare {named}", text)
        text = text.replace(f"@sqrt{suffix}(", f"@llvm.sqrt.f{bits}(")
    if target.is_web:
        text = _with_long_pointers(text)
    if paths := re.findall(r'c"[^"\n]*(?:/[\w.-]+){2}[^"\n]*"', text):
        raise UnknownCode(f"a kernel holds a path: {paths[0]}")
    return text


def _with_long_pointers(text: str) -> str:
    """Room of 64 bits for each pointer on the stack: the IR has the offsets of such pointers."""
    text = re.sub(
        r"(?m)^(\s+%\S+ = alloca )(\{[^\n]*?\})(?=, align|$)",
        lambda found: found[1] + found[2].replace("ptr", "i64"),
        text,
    )
    if typed := re.findall(r"getelementptr[^,\n]*\{[^}\n]*ptr[^}\n]*\}", text):
        raise UnknownCode(f"a kernel has an offset of 32-bit pointers: {typed[0]}")
    return text
