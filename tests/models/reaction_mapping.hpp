#pragma once
// From attention to atoms, as RXNMapper does it (Schwaller et al. 2021): which atom of the reactants each
// atom of the product is, and with which confidence. The test of the language model under it needs no more of
// chemistry than which tokens are atoms, their elements, and who is bound to whom.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "transformer/matrix.hpp"

namespace posenc_test {

using transformer::Index;
using transformer::Matrix;

/// One side of a reaction.
struct Molecules {
  std::vector<std::size_t> tokens;    // the token of each atom
  std::vector<std::string> elements;  // of each atom; "*" matches only itself
  std::vector<std::vector<std::size_t>> neighbours;

  std::size_t size() const { return tokens.size(); }
};

inline bool is_atom(const std::string& token) {
  return token[0] == '[' || std::isalpha(static_cast<unsigned char>(token[0])) != 0 || token == "*";
}

/// "[1*]" -> "*", "c" -> "C", "[O-]" -> "O", "Br" -> "Br"
inline std::string element(const std::string& token) {
  std::size_t at = token[0] == '[' ? 1 : 0;
  while (std::isdigit(static_cast<unsigned char>(token[at])) != 0) ++at;
  std::string symbol(1, static_cast<char>(std::toupper(static_cast<unsigned char>(token[at]))));
  const bool whole = token[0] != '[' || std::islower(static_cast<unsigned char>(token[at])) == 0;
  if (whole && at + 1 < token.size() && std::islower(static_cast<unsigned char>(token[at + 1])) != 0)
    symbol += token[at + 1];
  return symbol;
}

/// Reads the SMILES in tokens [first, last): atoms, branches, rings; any bond is a bond.
inline Molecules molecules(const std::vector<std::string>& tokens, std::size_t first, std::size_t last) {
  Molecules out;
  std::vector<std::size_t> branches;
  std::map<std::string, std::size_t> rings;
  bool bound = false;  // whether the next atom is bound to `previous`
  std::size_t previous = 0;
  const auto bind = [&](std::size_t a, std::size_t b) {
    out.neighbours[a].push_back(b);
    out.neighbours[b].push_back(a);
  };
  for (std::size_t t = first; t < last; ++t) {
    const std::string& token = tokens[t];
    if (is_atom(token)) {
      const std::size_t atom = out.size();
      out.tokens.push_back(t);
      out.elements.push_back(element(token));
      out.neighbours.emplace_back();
      if (bound) bind(previous, atom);
      previous = atom;
      bound = true;
    } else if (token == ".") {
      bound = false;
    } else if (token == "(") {
      branches.push_back(previous);
    } else if (token == ")") {
      previous = branches.back();
      branches.pop_back();
    } else if (std::isdigit(static_cast<unsigned char>(token.back())) != 0) {
      if (const auto open = rings.find(token); open != rings.end()) {
        bind(open->second, previous);
        rings.erase(open);
      } else {
        rings[token] = previous;
      }
    }
  }
  return out;
}

struct Mapping {
  std::vector<int> reactant_atom;   // of each product atom; -1 where there is none
  std::vector<double> confidences;  // of each product atom
  double confidence = 1;            // their product
};

/// attention: (tokens, tokens). Atom by atom, the surest first: its neighbours then look at the neighbours of
/// its reactant atom 90 times as much.
inline Mapping map_atoms(const std::vector<std::string>& tokens, const Matrix<double>& attention) {
  const auto arrow = static_cast<std::size_t>(std::find(tokens.begin(), tokens.end(), ">>") - tokens.begin());
  const Molecules reactants = molecules(tokens, 1, arrow);
  const Molecules products = molecules(tokens, arrow + 1, tokens.size() - 1);
  const auto rows = static_cast<Index>(products.size()), columns = static_cast<Index>(reactants.size());
  Matrix<double> weights = Matrix<double>::Zero(rows, columns);
  for (Index p = 0; p < rows; ++p)
    for (Index r = 0; r < columns; ++r) {
      const auto a = static_cast<std::size_t>(p), b = static_cast<std::size_t>(r);
      if (products.elements[a] != reactants.elements[b]) continue;
      const auto from = static_cast<Index>(products.tokens[a]), to = static_cast<Index>(reactants.tokens[b]);
      weights(p, r) = attention(from, to) + attention(to, from);
    }

  Mapping mapping;
  mapping.reactant_atom.assign(products.size(), -1);
  mapping.confidences.assign(products.size(), 1.0);
  for (Index step = 0; step < rows; ++step) {
    Matrix<double> shares = weights;
    for (Index p = 0; p < rows; ++p)
      if (const double sum = weights.row(p).sum(); sum != 0) shares.row(p) /= sum;
    Index p = 0, r = 0;
    const double confidence = shares.maxCoeff();
    if (std::fabs(confidence) <= 1e-8) break;
    for (p = 0; shares.row(p).maxCoeff() != confidence;) ++p;  // the first of several
    shares.row(p).maxCoeff(&r);
    const auto a = static_cast<std::size_t>(p), b = static_cast<std::size_t>(r);
    mapping.reactant_atom[a] = static_cast<int>(r);
    mapping.confidences[a] = confidence;
    for (const std::size_t near_p : products.neighbours[a])
      for (const std::size_t near_r : reactants.neighbours[b])
        weights(static_cast<Index>(near_p), static_cast<Index>(near_r)) *= 90.0;
    weights.row(p).setZero();
    weights.col(r).setZero();
  }
  for (const double confidence : mapping.confidences) mapping.confidence *= confidence;
  return mapping;
}

}  // namespace posenc_test
