# posenc_transliterate as its users meet it.
#   cmake -D PROGRAM= -D DIRECTORY= -D CHECK=options|names [-D MODELS=] -P transliterate_test.cmake
#
# DIRECTORY is a place for files, MODELS the folder with the three models.
cmake_minimum_required(VERSION 3.25)

set(DIRECTORY ${DIRECTORY}/transliterate_${CHECK})
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})

# run(EXIT_CODE ARGUMENTS...): leaves what the program printed in `out` and `err`.
function(run expected)
  execute_process(
    COMMAND ${PROGRAM} ${ARGN}
    WORKING_DIRECTORY ${DIRECTORY}
    OUTPUT_VARIABLE out
    ERROR_VARIABLE err
    RESULT_VARIABLE result)
  if(NOT result EQUAL expected)
    message(FATAL_ERROR "posenc_transliterate ${ARGN}\nleft with ${result}, expected ${expected}\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected \"${pattern}\" in:\n${text}")
  endif()
endfunction()

# refused(PATTERN ARGUMENTS...): exit code 2, nothing on stdout, and one line on stderr that matches.
function(refused pattern)
  run(2 ${ARGN})
  expect("${err}" "^posenc_transliterate: [^\n]*${pattern}[^\n]*\n$")
  if(NOT out STREQUAL "")
    message(FATAL_ERROR "posenc_transliterate ${ARGN}\nprinted: ${out}")
  endif()
endfunction()

if(CHECK STREQUAL "options")
  run(0 --help)
  expect("${out}" "Usage: posenc_transliterate FILE")
  foreach(option --beam --begins)
    expect("${out}" "${option}")
  endforeach()
  string(REPLACE ";" "," lines "${out}")
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line IN LISTS lines)
    string(LENGTH "${line}" length)
    if(length GREATER 80)
      message(FATAL_ERROR "wider than 80 columns: ${line}")
    endif()
  endforeach()
  refused("FILE")
  refused("--no-such-option" x.bin --no-such-option)
  refused("--beam" x.bin --beam 0)
  refused("--beam" x.bin --beam many)
  refused("a name is empty" x.bin " ")
  string(REPEAT "م" 101 long)
  refused("more than 100 letters" x.bin ${long})
  refused("missing.bin: not a file that can be read" missing.bin)
  refused("model.bin: not a file that can be read" ${DIRECTORY})
  file(WRITE ${DIRECTORY}/bad.bin "this is no model, whatever its name says")
  refused("bad.bin: not a CTranslate2 model" bad.bin)
  file(WRITE ${DIRECTORY}/empty.bin "")
  refused("empty.bin: truncated" empty.bin)

elseif(CHECK STREQUAL "names")
  set(float32 ${MODELS}/aren-transliteration)
  foreach(suffix "" -i16 -i8)
    run(0 ${MODELS}/aren-transliteration${suffix})
    expect("${out}" "^6 \\+ 6 layers, d_model 32, 8 heads, 182731 parameters")
    foreach(pair "mahmad:محمد" "fatma:فاطمة" "yosf:يوسف" "baghdad:بغداد" "arther:آرثر" "neuten:نيوتن" "schaxber:شكسبير"
                 "mosart:موزارت")
      string(REPLACE ":" ";" pair "${pair}")
      list(GET pair 0 spelling)
      list(GET pair 1 name)
      expect("${out}" "\n  ${spelling} +0\\.[0-9]+ +${name}\n")
    endforeach()
  endforeach()
  run(0 ${float32}/model.bin "آتزمون" "محمد يوسف" --beam 4)
  expect("${out}" "\n  atzmon +0.3459 +آتزمون\n  atzumon +0.1190\n  [a-z]+ +0.[0-9]+\n  [a-z]+ +0.[0-9]+\n  mahmad yosf +0.0358 ")
  run(0 ${float32} "آتزمون" --begins ats)
  expect("${out}" "\n  atsumon ")
  refused("--begins: not letters of the model" ${float32} --begins at!)
  run(0 ${float32} "محمدx")
  expect("${err}" "^posenc_transliterate: not in the alphabet of the model: x\n$")

  # A vocabulary of another model, and a file that ends too soon.
  file(COPY ${float32}/model.bin ${float32}/source_vocabulary.txt DESTINATION ${DIRECTORY}/half)
  refused("target_vocabulary.txt: not a file" half)
  file(COPY_FILE ${float32}/source_vocabulary.txt ${DIRECTORY}/half/target_vocabulary.txt)
  refused("target_vocabulary.txt: more than 42 lines" half)
  find_program(HEAD head)
  if(HEAD)
    execute_process(COMMAND ${HEAD} -c 500000 ${float32}/model.bin OUTPUT_FILE ${DIRECTORY}/cut.bin)
    refused("cut.bin: truncated" cut.bin)
  endif()

else()
  message(FATAL_ERROR "unknown CHECK: ${CHECK}")
endif()
