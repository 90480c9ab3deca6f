#pragma once
// What each model family does with position, where its config.json does not say: which scheme, which pairing
// its weights are stored for, and the values that apply where a key is absent. Names are model_type in lower
// case with
// '_' for '-' and '.'. Families that agree share a row.

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/io/model_positions.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

enum class HfScheme {
  composite,    ///< nothing of its own: its parts have configs of their own
  none,         ///< no positions at all: convolutional, recurrent, or left out on purpose
  other,        ///< a scheme that ModelPositions has no type for; `note` names it
  rope,         ///< a text or audio model that turns queries and keys
  mla,          ///< the rotated part of the head is a separate, trailing one (DeepSeek V2)
  deepseek_v4,  ///< two frequency sets, by compression
  vision_rope,  ///< rows and columns
  bloom,
  falcon,
  mpt,
  baichuan,
  chatglm,
  t5,
  learned,
  sinusoidal,
  whisper,
  esm,
  distilbert,
  mpnet,
  prophetnet,
  grid,           ///< a table with a row per patch
  mllama_vision,  ///< the same, gated against tables per tile
  named_tower,    ///< a SigLIP whose name, "siglip_so400m_patch14_384", says it all
  florence2,      ///< DaViT with tables for rows, columns and frames
  conformer       ///< by position_embeddings_type
};

/// Which layers are what, where `layer_types` does not say.
enum class HfLayers {
  all,
  sliding_rope,     ///< every period-th layer is full attention, without rope; the others slide and turn
  local_global,     ///< every period-th layer is full attention; both kinds turn
  modernbert,       ///< layers 0, period, 2 period ... are global
  no_rope_layers,   ///< the list of Llama 4 and SmolLM3, where 1 means rope
  full_interval,    ///< every period-th layer attends, the others are linear and have no positions
  hybrid_pattern,   ///< MiMo V2: hybrid_layer_pattern, 1 means sliding
  theta_list,       ///< a base per layer, 0 for none
  cross_attention,  ///< Mllama: the layers of cross_attention_layers look at the image and don't turn
  attn_indices,     ///< attn_layer_indices or full_attn_idxs attend, the others are recurrent
  attn_type_list,   ///< MiniMax: 1 means softmax attention
  kimi_linear,
  block_types,   ///< RecurrentGemma: a pattern of names that repeats
  block_configs  ///< Nemotron-NAS: layers with attention.no_op don't attend
};

enum class HfSinusoid { marian, fairseq, mask_free_fairseq, plain_fairseq, whisper, musicgen, paper, ctrl };

struct HfFamily {
  std::string_view names;
  HfScheme scheme = HfScheme::composite;
  std::optional<Pairing> pairing = std::nullopt;
  std::optional<double> rope_theta =
      10000;  ///< none: the file has to say, because transformers' default is not what released models use
  double partial_rotary_factor = 1;
  AxisLayout axes = AxisLayout::one;
  HfLayers layers = HfLayers::all;
  Index period = 0;
  LearnedEmbedding::Rule rule = LearnedEmbedding::Rule::consecutive;
  Position offset = 0;
  Index class_rows = 0;
  HfSinusoid sinusoid = HfSinusoid::marian;
  bool two_stacks = false;     ///< an encoder and a decoder
  std::string_view note = {};  ///< of HfScheme::other and none: what it is
};

inline constexpr HfFamily hf_families[] = {
    // Rotary text models, (i, i + d/2).
    {.names =
         "llama code_llama mistral arcee aria_text chameleon diffllama doge dots1 falcon_h1 gemma gemma2 "
         "granite granitemoe granitemoeshared granitemoehybrid hrm_text hunyuan_v1_dense hunyuan_v1_moe "
         "hyperclovax idefics jais2 jetmoe ministral olmo olmo2 olmoe qwen2 qwen2_moe qwen3 qwen3_moe "
         "seed_oss "
         "starcoder2 t5gemma vaultgemma internlm2 internlm xverse yuan exaone minicpm minicpmv molmo mimo "
         "phi3 "
         "phi3_v phi3small higgs_audio_v2 lasr_encoder kyutai_speech_to_text moshi mimi xcodec2 "
         "voxtral_realtime_text voxtral_realtime_encoder voxtral_realtime dia_encoder dia_decoder dia "
         "timesfm2_5 vibevoice_text granite4_vision_text t5_gemma_module zamba2 eurobert orion aquila "
         "deepseek",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half},
    {.names = "apertus", .scheme = HfScheme::rope, .pairing = Pairing::half, .rope_theta = 1.2e7},
    {.names = "bitnet csm csm_depth_decoder flex_olmo evolla muse_glimmer_assistant",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 5e5},
    {.names = "cwm emu3 emu3_text_model mixtral phimoe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 1e6},
    {.names = "solar_open", .scheme = HfScheme::rope, .pairing = Pairing::half, .rope_theta = 1e6},
    {.names = "dbrx", .scheme = HfScheme::rope, .pairing = Pairing::half},
    {.names = "gpt_oss", .scheme = HfScheme::rope, .pairing = Pairing::half, .rope_theta = 1.5e5},
    {.names = "nomic_bert", .scheme = HfScheme::rope, .pairing = Pairing::half, .rope_theta = 1e3},
    {.names = "jina_embeddings_v3", .scheme = HfScheme::rope, .pairing = Pairing::half, .rope_theta = 2e4},
    {.names = "hy_v3", .scheme = HfScheme::rope, .pairing = Pairing::half, .rope_theta = 11158840},
    {.names = "persimmon fuyu",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 25000,
     .partial_rotary_factor = 0.5},
    {.names = "phi nemotron glm4_moe glmasr_encoder",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .partial_rotary_factor = 0.5},
    {.names = "stablelm stablelm_epoch gpt_neox",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .partial_rotary_factor = 0.25},
    {.names = "gpt_neox_japanese phi4_multimodal phi4mm qwen",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half},
    {.names = "minimax_m2 minimax_m3 minimax_m3_vl_text",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 5e6},
    {.names = "nanochat", .scheme = HfScheme::rope, .pairing = Pairing::half},
    {.names = "clvp_encoder", .scheme = HfScheme::rope, .pairing = Pairing::half},
    {.names = "laguna mellum zaya",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = std::nullopt},
    {.names = "step3p7 step3p5",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = std::nullopt,
     .layers = HfLayers::theta_list},
    {.names = "mimo_v2_flash",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = std::nullopt,
     .layers = HfLayers::hybrid_pattern},
    {.names = "nemotron_nas deci",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .layers = HfLayers::block_configs},
    {.names = "ministral3", .scheme = HfScheme::rope, .pairing = Pairing::half},
    {.names = "mllama_text_model mllama",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 5e5,
     .layers = HfLayers::cross_attention},

    // Some layers without.
    {.names = "afmoe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .layers = HfLayers::sliding_rope,
     .period = 4},
    {.names = "exaone4 exaone4_5 exaone4_5_text exaone_moe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .layers = HfLayers::sliding_rope,
     .period = 4},
    {.names = "cohere2 cohere2_moe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .layers = HfLayers::sliding_rope,
     .period = 4},
    {.names = "smollm3",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 2e6,
     .layers = HfLayers::no_rope_layers,
     .period = 4},
    {.names = "llama4 llama4_text",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .rope_theta = 5e5,
     .layers = HfLayers::no_rope_layers,
     .period = 4},
    {.names = "granite_swa granitemoe_swa muse_glimmer_text muse_glimmer",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .layers = HfLayers::theta_list},
    {.names = "qwen3_next",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .partial_rotary_factor = 0.25,
     .layers = HfLayers::full_interval,
     .period = 4},
    {.names = "olmo_hybrid",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .layers = HfLayers::full_interval,
     .period = 4},
    {.names = "bamba",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .partial_rotary_factor = 0.5,
     .layers = HfLayers::attn_indices},
    {.names = "lfm2 lfm2_moe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 1e6,
     .layers = HfLayers::attn_indices},
    {.names = "minimax",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 1e6,
     .layers = HfLayers::attn_type_list},
    {.names = "recurrent_gemma",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .partial_rotary_factor = 0.5,
     .layers = HfLayers::block_types},

    // A base per kind of layer.
    {.names = "gemma3_text gemma3 gemma3n_text t5gemma2_text t5gemma2_decoder",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 1e6,
     .layers = HfLayers::local_global,
     .period = 6},
    {.names = "gemma4_text gemma4 gemma4_unified_text gemma4_unified diffusion_gemma_text diffusion_gemma",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = std::nullopt},
    {.names = "modernbert modernbert_decoder",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 160000,
     .layers = HfLayers::modernbert,
     .period = 3},
    {.names = "olmo3",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 5e5,
     .layers = HfLayers::local_global,
     .period = 4},

    // (2i, 2i + 1).
    {.names = "cohere", .scheme = HfScheme::rope, .pairing = Pairing::adjacent, .rope_theta = std::nullopt},
    {.names = "ernie4_5 ernie4_5_moe blt_patcher blt_global_transformer blt_local_encoder blt_local_decoder",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .rope_theta = 5e5},
    {.names = "helium", .scheme = HfScheme::rope, .pairing = Pairing::adjacent, .rope_theta = 1e5},
    {.names = "openai_privacy_filter",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .rope_theta = 1.5e5},
    {.names = "glm glm4",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .partial_rotary_factor = 0.5},
    {.names = "moonshine",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .partial_rotary_factor = 0.9,
     .two_stacks = true},
    {.names = "moonshine_streaming moonshine_streaming_encoder",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .partial_rotary_factor = 0.8},
    {.names = "gptj codegen", .scheme = HfScheme::rope, .pairing = Pairing::adjacent},
    {.names = "roformer pe_audio_encoder pe_audio_video_encoder pe_video_encoder",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent},
    {.names = "chatglm", .scheme = HfScheme::chatglm, .pairing = Pairing::adjacent},

    // M-RoPE.
    {.names = "qwen2_vl qwen2_5_vl qwen2_5_omni_text qwen2_5_omni_talker qwen2_5_omni_thinker",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 1e6,
     .axes = AxisLayout::sections},
    {.names = "paddleocr_vl",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 5e5,
     .axes = AxisLayout::sections},
    {.names = "glm4v glm46v glm_ocr glmga",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .partial_rotary_factor = 0.5,
     .axes = AxisLayout::sections},
    {.names = "glm4v_moe glm_image",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .partial_rotary_factor = 0.5,
     .axes = AxisLayout::sections},
    {.names = "hunyuan_vl hunyuan_vl_text",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .axes = AxisLayout::sections},
    {.names = "qwen3_vl qwen3_vl_moe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 5e5,
     .axes = AxisLayout::interleaved},
    {.names = "qwen3_omni_moe_text qwen3_omni_moe_thinker qwen3_omni_moe_talker_text qwen3_asr "
              "qwen3_asr_text qwen3_asr_thinker",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 1e6,
     .axes = AxisLayout::interleaved},
    {.names = "qwen3_omni_moe_talker_code_predictor qwen3_omni_moe_code2wav",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half},
    {.names = "qwen3_5 qwen3_5_moe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = std::nullopt,
     .partial_rotary_factor = 0.25,
     .axes = AxisLayout::interleaved,
     .layers = HfLayers::full_interval,
     .period = 4},
    {.names = "cosmos3_edge",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = 1e8,
     .axes = AxisLayout::interleaved},
    {.names = "cohere_compass",
     .scheme = HfScheme::rope,
     .pairing = Pairing::half,
     .rope_theta = std::nullopt,
     .axes = AxisLayout::interleaved},
    {.names = "ernie4_5_vl_moe",
     .scheme = HfScheme::rope,
     .pairing = Pairing::adjacent,
     .rope_theta = 5e5,
     .axes = AxisLayout::ernie},

    // A decoupled rotated part of the head.
    {.names = "deepseek_v2", .scheme = HfScheme::mla, .pairing = Pairing::adjacent},
    {.names = "deepseek_v3 deepseek_v32 kimi_k2 glm4_moe_lite axk1 axk2 mistral4 youtu",
     .scheme = HfScheme::mla,
     .pairing = Pairing::adjacent_to_half},
    {.names = "glm_moe_dsa",
     .scheme = HfScheme::mla,
     .pairing = Pairing::adjacent_to_half,
     .rope_theta = std::nullopt},
    {.names = "longcat_flash",
     .scheme = HfScheme::mla,
     .pairing = Pairing::adjacent_to_half,
     .rope_theta = 1e7},
    {.names = "minicpm3", .scheme = HfScheme::mla, .pairing = Pairing::half},
    {.names = "kimi_linear",
     .scheme = HfScheme::mla,
     .pairing = Pairing::adjacent_to_half,
     .layers = HfLayers::kimi_linear},
    {.names = "deepseek_v4 deepseek_ref", .scheme = HfScheme::deepseek_v4, .pairing = Pairing::adjacent},

    // Towers that turn with rows and columns.
    {.names = "qwen2_vl_vision qwen2_5_vl_vision qwen2_5_omni_vision_encoder qwen2_5_omni_thinker_vision "
              "ernie4_5_vl_moe_vision exaone4_5_vision glm_ocr_vision video_llama_3_vision",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::half,
     .axes = AxisLayout::axial},
    {.names = "qwen3_vl_vision qwen3_vl_moe_vision qwen3_5_vision qwen3_5_moe_vision "
              "qwen3_omni_moe_vision_encoder "
              "qwen3_omni_moe_thinker_vision cohere_compass_vision cosmos3_edge_vision glm4v_vision "
              "glm4v_moe_vision "
              "glm46v_vision paddleocr_vl_vision step3p7_vision step3p5_vision",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::half,
     .axes = AxisLayout::axial,
     .rule = LearnedEmbedding::Rule::grid},
    {.names = "mlcd mlcd_vision_model",
     .scheme = HfScheme::other,
     .note = "Qwen's rotary rows and columns with a learned angle for the class token (MLCD)"},
    {.names = "pixtral pixtral_vision",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::half,
     .axes = AxisLayout::pixtral},
    {.names = "dinov3_vit eomt_dinov3 sapiens2",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::half,
     .rope_theta = 100,
     .axes = AxisLayout::dinov3},
    {.names = "llama4_vision llama4_vision_model",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::adjacent,
     .axes = AxisLayout::axial,
     .rule = LearnedEmbedding::Rule::grid,
     .class_rows = 1},
    {.names = "gemma4_vision gemma4_unified_vision diffusion_gemma_vision",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::half,
     .rope_theta = 100,
     .axes = AxisLayout::axial,
     .rule = LearnedEmbedding::Rule::grid},
    {.names = "kimi_k25_vision kimi_k3_vision",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::half,
     .axes = AxisLayout::axial_interleaved,
     .rule = LearnedEmbedding::Rule::grid},
    {.names = "moonvit",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::adjacent,
     .axes = AxisLayout::axial_interleaved,
     .rule = LearnedEmbedding::Rule::grid},
    {.names = "minimax_m3_vl_vision",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::half,
     .axes = AxisLayout::axial},
    {.names = "vjepa2",
     .scheme = HfScheme::vision_rope,
     .pairing = Pairing::adjacent_mismatched,
     .axes = AxisLayout::axial},
    {.names = "muse_glimmer_vision",
     .scheme = HfScheme::other,
     .note = "rotary angles [w ; h ; w ; h] (Muse-Glimmer)"},

    // ALiBi, and models that have it or rope.
    {.names = "bloom", .scheme = HfScheme::bloom},
    {.names = "falcon refinedweb refinedwebmodel", .scheme = HfScheme::falcon, .pairing = Pairing::half},
    {.names = "mpt", .scheme = HfScheme::mpt},
    {.names = "baichuan", .scheme = HfScheme::baichuan, .pairing = Pairing::half},

    // Relative buckets.
    {.names = "t5 mt5 umt5 switch_transformers pop2piano byt5 myt5",
     .scheme = HfScheme::t5,
     .two_stacks = true},
    {.names = "mpnet", .scheme = HfScheme::mpnet, .rule = LearnedEmbedding::Rule::roberta},
    {.names = "prophetnet xlm_prophetnet",
     .scheme = HfScheme::prophetnet,
     .rule = LearnedEmbedding::Rule::roberta,
     .two_stacks = true},

    // A learned table.
    {.names =
         "bert albert electra convbert rembert mobilebert squeezebert megatron_bert ernie big_bird splinter "
         "roc_bert visual_bert lxmert bert_generation bert_japanese herbert dpr fnet canine blip_text_model "
         "git "
         "qformer blip_2_qformer instructblip_qformer instructblipvideo_qformer",
     .scheme = HfScheme::learned},
    {.names =
         "gpt2 gpt_neo gpt_bigcode openai openai_gpt imagegpt gpt_sw3 cpm clvp_decoder "
         "clip_text_model chinese_clip_text_model clipseg_text_model metaclip_2_text_model xclip_text_model "
         "owlvit_text_model owlv2_text_model siglip_text_model siglip2_text_model groupvit_text_model "
         "align_text_model flava_text_model",
     .scheme = HfScheme::learned},
    {.names = "roberta xlm_roberta xlm_roberta_xl camembert roberta_prelayernorm data2vec_text longformer "
              "ibert luke "
              "mluke bertweet phobert xmod clap_text_model bridgetower_text_model altclip_text_model",
     .scheme = HfScheme::learned,
     .rule = LearnedEmbedding::Rule::roberta},
    {.names = "mra nystromformer yoso",
     .scheme = HfScheme::learned,
     .rule = LearnedEmbedding::Rule::offset,
     .offset = 2},
    {.names = "opt biogpt", .scheme = HfScheme::learned, .rule = LearnedEmbedding::Rule::opt, .offset = 2},
    {.names = "bart mbart mbart50 mvp plbart barthez bartpho florence2_text",
     .scheme = HfScheme::learned,
     .rule = LearnedEmbedding::Rule::offset,
     .offset = 2,
     .two_stacks = true},
    {.names = "led blenderbot blenderbot_small bigbird_pegasus",
     .scheme = HfScheme::learned,
     .two_stacks = true},
    {.names = "esm",
     .scheme = HfScheme::esm,
     .pairing = Pairing::half,
     .rule = LearnedEmbedding::Rule::roberta},
    {.names = "distilbert xlm flaubert", .scheme = HfScheme::distilbert, .sinusoid = HfSinusoid::paper},

    // Sinusoids.
    {.names = "marian pegasus", .scheme = HfScheme::sinusoidal, .two_stacks = true},
    {.names = "autoformer informer time_series_transformer",
     .scheme = HfScheme::sinusoidal,
     .two_stacks = true},
    {.names = "ctrl", .scheme = HfScheme::sinusoidal, .sinusoid = HfSinusoid::ctrl},
    {.names = "m2m_100 nllb nllb_moe speech_to_text fsmt",
     .scheme = HfScheme::sinusoidal,
     .sinusoid = HfSinusoid::fairseq,
     .two_stacks = true},
    {.names = "kosmos_2_text_model kosmos_2_5_text_model",
     .scheme = HfScheme::sinusoidal,
     .sinusoid = HfSinusoid::fairseq},
    {.names = "xglm", .scheme = HfScheme::sinusoidal, .sinusoid = HfSinusoid::mask_free_fairseq},
    {.names = "pegasus_x",
     .scheme = HfScheme::sinusoidal,
     .sinusoid = HfSinusoid::plain_fairseq,
     .two_stacks = true},
    {.names = "timesfm", .scheme = HfScheme::sinusoidal, .sinusoid = HfSinusoid::plain_fairseq},
    {.names = "musicgen_decoder musicgen_melody_decoder",
     .scheme = HfScheme::sinusoidal,
     .sinusoid = HfSinusoid::musicgen},
    {.names = "videomae", .scheme = HfScheme::sinusoidal, .sinusoid = HfSinusoid::paper},
    {.names = "whisper", .scheme = HfScheme::whisper, .sinusoid = HfSinusoid::whisper, .two_stacks = true},
    {.names = "qwen2_audio_encoder qwen2_5_omni_audio_encoder qwen3_asr_audio_encoder "
              "qwen3_omni_moe_audio_encoder "
              "audioflamingo3_encoder voxtral_encoder",
     .scheme = HfScheme::whisper,
     .sinusoid = HfSinusoid::whisper},
    {.names = "trocr", .scheme = HfScheme::learned, .rule = LearnedEmbedding::Rule::offset, .offset = 2},

    // Tables with a row per patch.
    {.names =
         "vit vit_msn clip_vision_model chinese_clip_vision_model clipseg_vision_model "
         "metaclip_2_vision_model "
         "xclip_vision_model owlvit_vision_model owlv2_vision_model blip_vision_model blip_2_vision_model "
         "instructblip_vision_model instructblipvideo_vision_model git_vision_model dinov2 pixio eomt dpt "
         "internvl_vision intern_vit_6b altclip_vision_model flava_image_model "
         "dinov2_with_registers kosmos_2_vision_model vitpose_backbone",
     .scheme = HfScheme::grid,
     .class_rows = 1},
    {.names = "deit", .scheme = HfScheme::grid, .class_rows = 2},
    {.names = "siglip_vision_model siglip siglip2_vision_model siglip2 idefics2_vision idefics3_vision "
              "smolvlm_vision "
              "janus_vision_model ijepa groupvit_vision_model ovis2_vision minicpmv4_6_vision "
              "phi4_multimodal_vision "
              "hunyuan_vl_vision aria_vision tipsv2_vision_model",
     .scheme = HfScheme::grid},
    {.names = "mllama_vision_model mllama_vision", .scheme = HfScheme::mllama_vision, .class_rows = 1},
    {.names = "davit", .scheme = HfScheme::florence2},

    // Models made of models.
    {.names = "aria aya_vision chmv2 cohere2_vision colmodernvbert colpali colqwen2 deepseek_vl "
              "deepseek_vl_hybrid "
              "deepseek_vl_v2 depth_anything encoder_decoder fast_vlm gemma3n t5gemma2 "
              "higgs_audio_v2_tokenizer lfm2_vl "
              "lighton_ocr llava llava_next llava_next_video llava_onevision mistral3 modernvbert paligemma "
              "perception_lm "
              "rag shieldgemma2 speech_encoder_decoder vibevoice vibevoice_asr video_llava vipllava "
              "vision_encoder_decoder "
              "vision_text_dual_encoder vitmatte vitpose upernet clip chinese_clip clipseg metaclip_2 xclip "
              "owlvit owlv2 "
              "siglip_model groupvit align flava blip blip_2 instructblip instructblipvideo altclip "
              "clap_model bark clvp blt "
              "internvl internvl_chat kimi_k25 kimi_k3 florence2 qwen2_5_omni qwen3_omni_moe qwen2_audio "
              "audioflamingo3 voxtral glmasr musicgen musicgen_melody minimax_m3_vl llava_llama "
              "locateanything maira2 "
              "multi_modality minicpmv4_6 idefics2 idefics3 smolvlm janus ovis2 video_llama_3 got_ocr2 "
              "qianfan_ocr "
              "granite4_vision kosmos_2 kosmos_2_5 pe_audio pe_video pe_audio_video lasr bridgetower "
              "tipsv2_dpt nougat kosmos2 kosmos2_5 prompt_depth_anything xcodec gemma4_assistant "
              "gemma4_unified_assistant pp_chart2table deepseek_ocr2 cosmos3_omni",
     .scheme = HfScheme::composite},

    // No positions.
    {.names = "jamba nemotron_h mamba mamba2 falcon_mamba rwkv xlstm zamba",
     .scheme = HfScheme::none,
     .note = "recurrent layers carry the order, attention knows none"},
    {.names =
         "bit convnext convnextv2 cvt dac dinov3_convnext efficientnet encodec focalnet glpn hgnet_v2 "
         "mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2 poolformer pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pvt_v2 "
         "regnet resnet segformer superpoint swiftformer textnet univnet uvdoc vibevoice_acoustic_tokenizer "
         "vibevoice_semantic_tokenizer qwen2_5_omni_bigvgan gemma3n_vision align_vision_model "
         "pp_ocrv5_mobile_det "
         "pp_ocrv5_mobile_rec pp_ocrv5_server_det pp_ocrv5_server_rec pp_ocrv6_medium_det pp_ocrv6_small_det "
         "pp_ocrv6_small_rec pp_ocrv6_tiny_rec slanet gen_vision",
     .scheme = HfScheme::none,
     .note = "convolutions carry the order"},

    // By position_embeddings_type.
    {.names = "wav2vec2_conformer wav2vec2_bert", .scheme = HfScheme::conformer, .pairing = Pairing::half},

    // Schemes that ModelPositions has no type for.
    {.names = "deberta deberta_v2",
     .scheme = HfScheme::other,
     .note = "the disentangled attention of DeBERTa"},
    {.names = "sew_d",
     .scheme = HfScheme::other,
     .note = "positions by convolution and the disentangled attention of DeBERTa"},
    {.names = "xlnet funnel fastspeech2_conformer parakeet parakeet_encoder nemotron_asr_streaming "
              "nemotron3_5_asr "
              "gemma3n_audio gemma4_audio gemma4_unified_audio transfo_xl",
     .scheme = HfScheme::other,
     .note = "the relative terms of Transformer-XL"},
    {.names = "granite_speech granite_speech_plus granite_speech_encoder speecht5 vits seamless_m4t_v2 "
              "seamless_m4t",
     .scheme = HfScheme::other,
     .note = "relative positions in the keys, as Shaw et al. have them"},
    {.names = "wav2vec2 hubert unispeech unispeech_sat sew data2vec_audio wav2vec2_phoneme wav2vec2_with_lm",
     .scheme = HfScheme::other,
     .note = "positions by convolution"},
    {.names = "wavlm",
     .scheme = HfScheme::other,
     .note = "positions by convolution and a gated bias by buckets"},
    {.names = "swin donut donut_swin maskformer_swin clap clap_audio_model",
     .scheme = HfScheme::other,
     .note = "Swin's table of relative offsets"},
    {.names = "swinv2 swin2sr", .scheme = HfScheme::other, .note = "Swin v2's relative bias from a network"},
    {.names = "beit data2vec_vision", .scheme = HfScheme::other, .note = "BEiT's table of relative offsets"},
    {.names = "sam sam_hq sam_vision_model sam_hq_vision_model vitdet seggpt slanext pp_formulanet "
              "got_ocr2_vision deepseek_ocr2_vision",
     .scheme = HfScheme::other,
     .note = "decomposed relative positions of rows and columns"},
    {.names = "sam2 sam2_video sam3 sam3_video sam3_tracker sam3_tracker_video sam3_lite_text edgetam "
              "edgetam_video",
     .scheme = HfScheme::other,
     .note = "sines of image coordinates, random Fourier features and axial rotations in one model"},
    {.names = "detr conditional_detr dab_detr deformable_detr grounding_dino mm_grounding_dino mask2former "
              "maskformer "
              "oneformer table_transformer lw_detr rf_detr",
     .scheme = HfScheme::other,
     .note = "sines of image coordinates (DETR)"},
    {.names = "vit_mae d_fine deimv2 omdet_turbo pp_doclayout_v2 pp_doclayout_v3 rt_detr rt_detr_v2 aimv2 "
              "aimv2_vision_model videoprism",
     .scheme = HfScheme::other,
     .note = "sines of rows and columns"},
    {.names = "layoutlm layoutlmv2 layoutlmv3 layoutxlm lilt udop bros markuplm tapas",
     .scheme = HfScheme::other,
     .note = "tables of the layout of a document"},
    {.names = "longt5",
     .scheme = HfScheme::other,
     .note = "buckets of blocks and of global tokens besides T5's (LongT5)"},
    {.names = "pix2struct pix2struct_vision_model pix2struct_text_model",
     .scheme = HfScheme::other,
     .note = "tables of rows and of columns (Pix2Struct)"},
    {.names = "tvp kosmos_2_5_vision_model",
     .scheme = HfScheme::other,
     .note = "tables of rows, of columns and of frames"},
    {.names = "cpmant", .scheme = HfScheme::other, .note = "buckets by distance and by segment (CPM-Ant)"},
    {.names = "reformer", .scheme = HfScheme::other, .note = "axial position tables (Reformer)"},
    {.names = "perceiver", .scheme = HfScheme::other, .note = "Fourier features of coordinates (Perceiver)"},
    {.names = "levit", .scheme = HfScheme::other, .note = "a bias per offset of rows and columns (LeViT)"},
    {.names = "dinat", .scheme = HfScheme::other, .note = "neighbourhood attention's table of offsets"},
    {.names = "inkling inkling_text",
     .scheme = HfScheme::other,
     .note = "Inkling's relative bias from the hidden state"},
    {.names = "patchtst patchtsmixer", .scheme = HfScheme::other, .note = "PatchTST's normalised table"},
    {.names = "lightglue",
     .scheme = HfScheme::other,
     .note = "rotation by learned angles of key points (LightGlue)"},
    {.names = "superglue", .scheme = HfScheme::other, .note = "a network over coordinates (SuperGlue)"},
    {.names = "efficientloftr",
     .scheme = HfScheme::other,
     .note = "rotation of the whole hidden state by rows and columns (EfficientLoFTR)"},
    {.names = "musicflamingo musicflamingo_encoder",
     .scheme = HfScheme::other,
     .note = "rotation by time stamps (MusicFlamingo)"},
    {.names = "vilt", .scheme = HfScheme::other, .note = "a table of patches beside one of tokens (ViLT)"},
    {.names = "decision_transformer",
     .scheme = HfScheme::other,
     .note = "a table of time steps (Decision Transformer)"},
    {.names = "pi0", .scheme = HfScheme::other, .note = "Fourier features of a flow's time (pi0)"},
    {.names = "qwen2_5_omni_token2wav qwen2_5_omni_dit",
     .scheme = HfScheme::other,
     .note = "the speech decoder turns its first head alone"},
    {.names = "phi4_multimodal_audio phi4mm_audio",
     .scheme = HfScheme::other,
     .note = "a table of clipped distances (Phi-4 audio)"},
    {.names = "timesformer vivit x_clip hiera pvt mgp_str radio yolos audio_spectrogram_transformer videomt "
              "cohere_asr zoedepth depth_pro timm_backbone timm_wrapper data2vec",
     .scheme = HfScheme::other,
     .note = "a table whose shape the config does not settle (frames, stages, or tokens of its own)"},
    {.names = "tipsv2 tipsv2_text_model",
     .scheme = HfScheme::other,
     .note = "a tower with a table and a text model with sinusoids (TIPS v2)"},
    {.names = "falcon_perception",
     .scheme = HfScheme::other,
     .note = "image tokens also turn with their row and column, which the file does not describe"},
    {.names = "vision multi_modality_vision deepseek_vl_v2_vision", .scheme = HfScheme::named_tower},
};

/// model_type as the table spells it.
inline std::string hf_family_name(std::string_view model_type) {
  std::string name;
  for (const char c : model_type)
    name += c == '-' || c == '.' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

/// The row of a name, or nullptr.
inline const HfFamily* find_hf_family(std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return nullptr;
  for (const HfFamily& family : hf_families)
    for (std::string_view rest = family.names; !rest.empty();) {
      const std::size_t end = rest.find(' ');
      if (rest.substr(0, end) == name) return &family;
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  return nullptr;
}

/// Whether the family of that name is in a list "a b c".
inline bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const std::string_view one : names)
    if (one == name) return true;
  return false;
}

/// Every name of the table, for tests.
inline std::vector<std::string> hf_family_names() {
  std::vector<std::string> names;
  for (const HfFamily& family : hf_families)
    for (std::string_view rest = family.names; !rest.empty();) {
      const std::size_t end = rest.find(' ');
      names.emplace_back(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  return names;
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
