# posenc_inspect from the outside: --help, exit codes with one line on stderr, and what it prints for a config written
# here.
#   cmake -D PROGRAM= -D WORK= -P inspect_test.cmake
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY ${WORK})

# run(CODE ARGS...): sets out and err; the exit code must be CODE.
function(run code)
  execute_process(COMMAND ${PROGRAM} ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT result STREQUAL code)
    message(FATAL_ERROR "posenc_inspect ${ARGN}: expected exit code ${code}, got ${result}\n${out}${err}")
  endif()
  string(REPLACE "\r\n" "\n" out "${out}")
  string(REPLACE "\r\n" "\n" err "${err}")
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

# expect(TEXT WHAT): out holds TEXT.
function(expect text)
  string(FIND "${out}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected this in the output:\n${text}\ngot:\n${out}")
  endif()
endfunction()

# refuse(TEXT ARGS...): exit code 2, nothing on stdout, one line on stderr with TEXT in it.
function(refuse text)
  run(2 ${ARGN})
  string(FIND "${err}" "${text}" at)
  if(at EQUAL -1 OR NOT err MATCHES "^posenc_inspect: [^\n]+\n$" OR NOT out STREQUAL "")
    message(FATAL_ERROR "posenc_inspect ${ARGN}: expected one line with '${text}' on stderr, got:\n${err}\n${out}")
  endif()
endfunction()

run(0 --help)
expect("--layer")
expect("config.json")

# Llama 3.1: bands, one scheme for all layers.
file(WRITE ${WORK}/llama.json [=[
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_attention_heads": 32,
 "num_hidden_layers": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rope_theta": 500000.0,
 "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 8192}}
]=])
run(0 ${WORK}/llama.json)
expect([=[
llama.json: llama

model: 32 layers

  layers 0-31: RoPE
    pairing     half, dimensions (i, i + 64)
    base        500000
    scaling     Llama 3 bands: factor 8, trained on 8192 tokens, 1 to 4 turns
    rotated     128 of 128 dimensions of each head: 64 pairs
    context     131072 tokens
    longest     2.047e+07 tokens = 156.2 x the context: 25 of 64 pairs make no
                whole turn in it

     pair    unscaled      scaled   ratio  1    10  100  1000     1e5 1e6  1e7
        0       6.283       6.283       1      *                  |
]=])
expect([=[
       29        2402        2900   1.207                 o#      |
       33        5454       20094   3.684                   o #   |
       37       12385       99080       8                    o   #|
]=])

# One layer shows every pair.
run(0 ${WORK}/llama.json --layer 7)
expect("  layer 7: RoPE\n")
expect("\n       30 ")
expect("\n       31 ")
expect("\n       32 ")

# Layers of two kinds are folded into runs.
file(WRITE ${WORK}/cohere2.json [=[
{"model_type": "cohere2", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 8,
 "num_key_value_heads": 8, "max_position_embeddings": 8192, "rope_theta": 50000.0, "sliding_window": 4096,
 "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
                 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]}
]=])
run(0 ${WORK}/cohere2.json)
expect("  layers 0-2, 4-6: RoPE, sliding_attention\n")
expect("  layers 3, 7: no position, full_attention\n")

refuse("--layer: expected a layer in [0, 32), got 32" ${WORK}/llama.json --layer 32)
refuse("got -1" ${WORK}/llama.json --layer=-1)
refuse("--layer" ${WORK}/llama.json --layer seven)
refuse("model is required")
refuse("no_such_file.json" ${WORK}/no_such_file.json)
refuse("no_such_file.gguf" ${WORK}/no_such_file.gguf)
file(WRITE ${WORK}/broken.json "{\"model_type\": \"llama\",\n \"hidden_size\": ")
refuse("broken.json" ${WORK}/broken.json)
file(WRITE ${WORK}/broken.gguf "GGUF")
refuse("broken.gguf: gguf: the version: expected 4 bytes" ${WORK}/broken.gguf)
file(WRITE ${WORK}/text.gguf "a text")
refuse("starts with" ${WORK}/text.gguf)
