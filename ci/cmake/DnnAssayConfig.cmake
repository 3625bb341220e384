# CMake package of DNN Assay: plugin tests for CTest. Works from an installed tarball
# (find_package(DnnAssay)) and from add_subdirectory of the folder that this file stands in.
#
#   dnn_assay_add_plugin_test(
#     TARGET <target>           a SHARED or MODULE library: the plugin
#     [NAME <name>]             default: dnn-assay.<target>.<suite>
#     [SUITE <suite>...]        default: smoke
#     [ENGINE <engine>...]      default: all engines
#     [CONFIG <file>]           default: dnn-assay.yaml of the source folder or above
#     [EXPECT <file>...]        waivers
#     [CLAIMS <file>...]        claims
#     [DEVICE host|hip|cuda|mock-hip]  default: found out from the file
#     [LABELS <label>...]       beside quick, standard or full, which follows from the suite
#     [TIMEOUT <seconds>]       default: 600
#     [REQUIRE_DEVICE]          no device is a failure; default: a skip
#     [NIGHTLY]                 expired waivers are void, and red
#     [ARGS <argument>...])     further arguments of `dnn-assay check`
#
# A test that was skipped for want of a device exits with 77, which CTest shows as skipped.

cmake_minimum_required(VERSION 3.16)

if(NOT DnnAssay_EXECUTABLE)
  find_program(DnnAssay_EXECUTABLE
    NAMES dnn-assay
    HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin"
          "${CMAKE_CURRENT_LIST_DIR}/../../target/release"
          "${CMAKE_CURRENT_LIST_DIR}/../../target/debug"
    DOC "The dnn-assay program")
endif()

if(NOT DnnAssay_EXECUTABLE)
  set(DnnAssay_FOUND FALSE)
  set(DnnAssay_NOT_FOUND_MESSAGE
    "dnn-assay was not found: put it on PATH, or set DnnAssay_EXECUTABLE to it")
  if(NOT CMAKE_FIND_PACKAGE_NAME)
    message(FATAL_ERROR "${DnnAssay_NOT_FOUND_MESSAGE}")
  endif()
  return()
endif()
if(NOT EXISTS "${DnnAssay_EXECUTABLE}")
  set(DnnAssay_FOUND FALSE)
  set(DnnAssay_NOT_FOUND_MESSAGE "DnnAssay_EXECUTABLE: there is no file ${DnnAssay_EXECUTABLE}")
  if(NOT CMAKE_FIND_PACKAGE_NAME)
    message(FATAL_ERROR "${DnnAssay_NOT_FOUND_MESSAGE}")
  endif()
  return()
endif()
set(DnnAssay_FOUND TRUE)

# The label by which upstream's tiers are chosen with `ctest -L`.
function(_dnn_assay_tier_label out)
  set(label quick)
  foreach(suite IN LISTS ARGN)
    if(suite MATCHES "full")
      set(label full)
    elseif(suite MATCHES "standard" AND NOT label STREQUAL full)
      set(label standard)
    endif()
  endforeach()
  set(${out} ${label} PARENT_SCOPE)
endfunction()

function(dnn_assay_add_plugin_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg
    "REQUIRE_DEVICE;NIGHTLY"
    "TARGET;NAME;CONFIG;DEVICE;TIMEOUT"
    "SUITE;ENGINE;EXPECT;CLAIMS;LABELS;ARGS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dnn_assay_add_plugin_test: unknown argument: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TARGET)
    message(FATAL_ERROR "dnn_assay_add_plugin_test: TARGET is missing")
  endif()
  if(NOT TARGET ${arg_TARGET})
    message(FATAL_ERROR "dnn_assay_add_plugin_test: there is no target '${arg_TARGET}'")
  endif()
  get_target_property(type ${arg_TARGET} TYPE)
  if(NOT type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    message(FATAL_ERROR
      "dnn_assay_add_plugin_test: '${arg_TARGET}' is no shared library but ${type}; "
      "a plugin is made by add_library(${arg_TARGET} SHARED ...)")
  endif()
  if(arg_DEVICE AND NOT arg_DEVICE MATCHES "^(host|hip|cuda|mock-hip)$")
    message(FATAL_ERROR
      "dnn_assay_add_plugin_test: '${arg_DEVICE}' is no device: host, hip, cuda or mock-hip")
  endif()
  if(NOT arg_SUITE)
    set(arg_SUITE smoke)
  endif()
  if(NOT arg_NAME)
    string(REPLACE ";" "+" suites "${arg_SUITE}")
    set(arg_NAME "dnn-assay.${arg_TARGET}.${suites}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  string(MAKE_C_IDENTIFIER "${arg_NAME}" folder)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/dnn-assay/${folder}")
  set(command "${DnnAssay_EXECUTABLE}" check "$<TARGET_FILE:${arg_TARGET}>" --plain --out "${out}"
    --html "${out}/report.html")
  foreach(pair "SUITE=--suite" "ENGINE=--engine" "EXPECT=--expect" "CLAIMS=--claims"
               "CONFIG=--config" "DEVICE=--device")
    string(REPLACE "=" ";" pair "${pair}")
    list(GET pair 0 key)
    list(GET pair 1 flag)
    foreach(value IN LISTS arg_${key})
      if(key MATCHES "^(EXPECT|CLAIMS|CONFIG)$")
        get_filename_component(value "${value}" ABSOLUTE)
        if(NOT EXISTS "${value}")
          message(FATAL_ERROR "dnn_assay_add_plugin_test: ${key}: there is no file ${value}")
        endif()
      endif()
      list(APPEND command ${flag} "${value}")
    endforeach()
  endforeach()
  if(arg_NIGHTLY)
    list(APPEND command --nightly)
  endif()
  add_test(NAME "${arg_NAME}"
    COMMAND ${command} ${arg_ARGS}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  _dnn_assay_tier_label(tier ${arg_SUITE})
  if(arg_REQUIRE_DEVICE)
    set(device "DNN_ASSAY_REQUIRE_DEVICE=1")
  else()
    set(device "DNN_ASSAY_SKIP_IF_NO_DEVICE=1")
  endif()
  set_tests_properties("${arg_NAME}" PROPERTIES
    SKIP_RETURN_CODE 77
    TIMEOUT ${arg_TIMEOUT}
    LABELS "${tier};${arg_LABELS}"
    ENVIRONMENT "${device}"
    PROCESSORS 2)
endfunction()
