// The reference pages say what is true: the programs on them are those of docs/programs, with the output that
// they print; the snippets of docs/from_pytorch.md are those of a test; links and images lead to files.

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path root = POSENC_ROOT;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path.string());
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  REQUIRE(found.size() >= 13);
  return found;
}

struct Block {
  std::string language, text, heading;
};

/// The fenced blocks of a page, each with the last heading before it.
std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  std::istringstream lines(page);
  std::string heading;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      if (!inside) blocks.push_back({line.substr(3), "", heading});
      inside = !inside;
    } else if (inside) {
      blocks.back().text += line + '\n';
    } else if (line.starts_with("#")) {
      heading = line.substr(line.find(' ') + 1);
    }
  }
  REQUIRE(!inside);
  return blocks;
}

std::string output_of(const std::string& program) {
  const std::string command = std::string(POSENC_DOCS_PROGRAMS) + ' ' + program;
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  const int status = pclose(pipe);
  REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return text;
}

/// What stands between `// [name]` and `// [/name]`, without its indentation.
std::string region(const std::string& code, const std::string& name) {
  const std::string first = "// [" + name + "]\n", last = "// [/" + name + "]\n";
  const std::size_t from = code.find(first), to = code.find(last);
  INFO(name);
  REQUIRE((from != std::string::npos && to != std::string::npos));
  const std::size_t indent = from - code.rfind('\n', from) - 1;
  std::istringstream lines(code.substr(from + first.size(), code.rfind('\n', to) + 1 - from - first.size()));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += (line.empty() ? "" : line.substr(indent)) + '\n';
  return text;
}

}  // namespace

TEST_CASE("every program of the pages is compiled, and prints what stands there") {
  std::map<std::string, std::string> programs;  // by their text
  for (const auto& entry : fs::directory_iterator(root / "docs" / "programs"))
    programs[read(entry.path())] = entry.path().stem().string();
  std::set<std::string> shown;
  for (const fs::path& path : pages()) {
    const std::vector<Block> blocks = blocks_of(read(path));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].language != "cpp" || blocks[i].text.find("int main(") == std::string::npos) continue;
      INFO(path.string() << "\n" << blocks[i].text);
      REQUIRE(programs.contains(blocks[i].text));
      const std::string name = programs.at(blocks[i].text);
      REQUIRE((i + 1 < blocks.size() && blocks[i + 1].language == "text"));
      CHECK(blocks[i + 1].text == output_of(name));
      CHECK(name == path.stem().string());
      shown.insert(name);
    }
  }
  CHECK(shown.size() == programs.size());
  CHECK(shown.size() >= 9);
}

TEST_CASE("every scheme's page has the same parts, a program and a figure") {
  for (const char* name : {"token_embedding", "sinusoidal", "learned_positions", "rope", "rope_scaling",
                           "axes", "alibi", "transformer_embedding", "positions"}) {
    INFO(name);
    const std::string page = read(root / "docs" / (std::string(name) + ".md"));
    std::size_t at = 0;
    for (const char* part : {"\n## Equation\n", "\n## Options and who chooses which\n", "\n## Program\n",
                             "\n## Traps\n", "\n## Gradient\n"}) {
      INFO(part);
      const std::size_t found = page.find(part, at);
      REQUIRE(found != std::string::npos);
      at = found;
    }
    CHECK(page.find("](figures/") != std::string::npos);
    CHECK(page.find(".svg)") != std::string::npos);
    CHECK(read(root / "docs" / "index.md").find("(" + std::string(name) + ".md)") != std::string::npos);
  }
}

TEST_CASE("the snippets beside the textbook's are those of the test") {
  const std::string code = read(root / "tests" / "docs" / "from_pytorch_test.cpp");
  std::vector<std::string> names;
  const std::vector<Block> blocks = blocks_of(read(root / "docs" / "from_pytorch.md"));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].language != "cpp") continue;
    INFO(blocks[i].heading);
    CHECK(blocks[i].text == region(code, blocks[i].heading));
    REQUIRE((i > 0 && blocks[i - 1].language == "python" && blocks[i - 1].heading == blocks[i].heading));
    names.push_back(blocks[i].heading);
  }
  CHECK(names == std::vector<std::string>{"TokenEmbedding", "get_sinusoidal_encoding",
                                          "SinusoidalPositionalEncoding", "LearnedPositionalEmbedding",
                                          "rotary_embedding", "ALiBi", "TransformerEmbedding"});
}

TEST_CASE("links and images lead to files") {
  std::vector<fs::path> texts = pages();
  texts.push_back(root / "README.md");
  std::size_t links = 0;
  for (const fs::path& path : texts) {
    std::string page = read(path);
    for (const Block& block : blocks_of(page)) page.replace(page.find(block.text), block.text.size(), "");
    const auto check = [&](const std::string& opening, char closing) {
      for (std::size_t at = page.find(opening); at != std::string::npos; at = page.find(opening, at + 1)) {
        const std::size_t first = at + opening.size();
        std::string target = page.substr(first, page.find(closing, first) - first);
        if (target.starts_with("http") || target.starts_with("#")) continue;
        target.erase((std::min)(target.find('#'), target.size()));
        INFO(path.string() << ": " << target);
        CHECK(fs::exists(path.parent_path() / target));
        ++links;
      }
    };
    check("](", ')');
    check("src=\"", '"');
    check("srcset=\"", '"');
  }
  CHECK(links > 50);
}
