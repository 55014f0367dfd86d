#pragma once
// Symbol tables by file, shared by the modules of many processes: reading one takes milliseconds.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/file_version.h"
#include "unwind/symbol_table.h"

namespace luaspy {

// A table that was made for one place of the file, for a module that has it at another one.
class MovedSymbols {
 public:
  MovedSymbols(std::shared_ptr<const SymbolTable> table, Address by) : table_(std::move(table)), by_(by) {}
  std::optional<Symbol> find(Address address) const {
    std::optional<Symbol> symbol = table_->find(address - by_);
    if (symbol) symbol->start += by_;
    return symbol;
  }

 private:
  std::shared_ptr<const SymbolTable> table_;
  Address by_;  // modulo 2^64
};

class KnownSymbols {
 public:
  // As SymbolTable's constructor; made only if the file is not known.
  MovedSymbols of(int file, const std::string& path, Address bias);

 private:
  struct Known {
    std::shared_ptr<const SymbolTable> table;
    Address bias;
  };
  std::map<FileVersion, Known> tables_;
};

}  // namespace luaspy
