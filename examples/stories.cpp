// A small trained Llama tells stories: a decoder-only transformer composed from posenc and
// examples/transformer, with the weights of somebody else.
//
//   posenc_stories stories260K.bin "Once upon a time"
//
// The same weights come in two forms that differ in which dimensions a rotation pairs: adjacent ones in the
// file of llama2.c, halves in that of Hugging Face. Both tell the same story.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "models/error.hpp"
#include "models/load_llama.hpp"
#include "transformer/language_model.hpp"
#include "translate/utf8.hpp"

namespace {

using models::InputError;
using models::LlamaTokenizer;
using transformer::Index;
using transformer::Token;
using transformer::Tokens;

struct Options {
  std::string file, prompt, tokenizer;
  Index steps = 256;
  double temperature = 0;
  std::uint64_t seed = 1;
};

/// Bytes that would steer the terminal are left out.
void print(const std::string& text) {
  for (const char c : text)
    if (const auto byte = static_cast<unsigned char>(c); byte >= 0x20 ? byte != 0x7f : c == '\n' || c == '\t')
      std::fputc(c, stdout);
  std::fflush(stdout);
}

void tell(const Options& options) {
  const models::Llama<float> llama = models::load_llama<float>(options.file);
  const Index vocabulary = llama.network.config().vocab_size;
  const LlamaTokenizer tokenizer = models::load_llama_tokenizer(
      options.tokenizer.empty() ? models::tokenizer_beside(options.file, vocabulary) : options.tokenizer,
      vocabulary);
  const auto context = static_cast<std::size_t>(llama.context);
  if (options.prompt.size() > context * tokenizer.longest())
    throw InputError("the prompt has " + std::to_string(options.prompt.size()) +
                     " bytes, more than the model can read");
  const Tokens prompt = tokenizer.encode(options.prompt);
  if (prompt.size() > context)
    throw InputError("the prompt has " + std::to_string(prompt.size()) + " tokens, the model can read " +
                     std::to_string(context));

  const Index most = options.steps + 1;
  const Index capacity = (std::max)((std::min)(most, llama.context), static_cast<Index>(prompt.size()));
  transformer::Continuation<float> text(llama.network, capacity);
  transformer::Random random(options.seed);
  Token last = LlamaTokenizer::bos;
  for (std::size_t n = 1; n < prompt.size(); ++n) {
    print(tokenizer.decode(last, prompt[n]));
    last = prompt[n];
  }
  auto logits = text.read(prompt);
  const auto start = std::chrono::steady_clock::now();
  Index generated = 0;
  for (Index n = static_cast<Index>(prompt.size()); n <= options.steps; ++n) {
    const auto scores = transformer::row_of(logits, 0);
    const Token next = options.temperature == 0 ? transformer::most_likely(scores)
                                                : transformer::sampled(scores, options.temperature, random);
    ++generated;
    if (next == LlamaTokenizer::bos || next == LlamaTokenizer::eos) break;
    print(tokenizer.decode(last, next));
    last = next;
    if (n == options.steps) break;
    // A full window slides: the older half after <s> is forgotten, and the keys of the rest turn to where it
    // was.
    if (text.length() == text.capacity()) text.erase(1, (text.length() - 1) / 2);
    logits = text.read(std::span<const Token>(&next, 1));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("\n");
  std::fflush(stdout);
  std::fprintf(stderr, "%td tokens in %.3f s, %.0f tokens/s\n", generated, seconds,
               static_cast<double>(generated) / seconds);
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(20); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: posenc_stories [options] FILE [prompt]\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() || option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

constexpr const char* description =
    "A small trained Llama goes on with a text, or tells a story of its own.\n"
    "\n"
    "FILE is a model of llama2.c (.bin) or of Hugging Face (.safetensors, with its\n"
    "config.json beside it). The tokenizer is that of llama2.c, from the same folder.\n"
    "The model stories260K is on Hugging Face, in karpathy/tinyllamas.";

Options parse(CLI::App& app, int argc, char** argv) {
  Options o;
  app.name("posenc_stories");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("--help", "Print this and leave");
  app.add_option("FILE", o.file, "The model")->required();
  app.add_option("prompt", o.prompt, "How the text starts, in quotes; nothing: a story");
  app.add_option("--tokenizer", o.tokenizer, "The tokenizer, if it is somewhere else")->type_name("FILE");
  app.add_option("--steps", o.steps,
                 "How long the text may become, in tokens (256); beyond\n"
                 "what the model can read, it forgets the beginning")
      ->check(CLI::Range(Index{1}, Index{1'000'000}).description(""))
      ->type_name("N");
  app.add_option("--temperature", o.temperature,
                 "0: always the most likely token (0); 1: as likely as\n"
                 "the model says; more: bolder")
      ->check(CLI::Range(0.0, 100.0).description(""))
      ->type_name("T");
  app.add_option("--seed", o.seed, "Where chance starts, with a temperature (1)")->type_name("N");
  app.parse(argc, argv);
  if (!(o.temperature >= 0)) throw InputError("--temperature: expected a number, got nan");
  if (!translate::is_utf8(o.prompt)) throw InputError("the prompt is not UTF-8");
  return o;
}

/// The message as one line.
int fail(std::string message) {
  if (const auto end = message.find('\n'); end != std::string::npos) message.resize(end);
  std::fprintf(stderr, "posenc_stories: %s\n", message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(description);
  try {
    tell(parse(app, argc, argv));
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
