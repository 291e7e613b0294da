#include "client/cli/draw_trees.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/cli/tree_svg.h"

extern char** environ;

namespace tensord::cli {
namespace {

absl::Status Write(const std::string& text, const std::string& path) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? absl::OkStatus()
              : absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
}

/// Has rsvg-convert make the PNG file `path` of the picture in file `svg`.
absl::Status Rasterize(const std::string& svg, const std::string& path) {
  std::string words[] = {"rsvg-convert", "--output", path, svg};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), nullptr};
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], nullptr, nullptr,
                                 arguments, environ);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot run rsvg-convert, which makes ", path,
                     " (Debian's librsvg2-bin has it); an .svg needs nothing"));
  }
  int ended = 0;
  waitpid(process, &ended, 0);
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("rsvg-convert could not make ", path));
}

absl::Status DrawPng(const std::string& picture, const std::string& path) {
  const std::string svg = path + ".svg";
  absl::Status drawn = Write(picture, svg);
  if (drawn.ok()) drawn = Rasterize(svg, path);
  std::remove(svg.c_str());
  return drawn;
}

}  // namespace

absl::Status DrawTrees(const ProgramExplanation& explanation,
                       const std::string& path) {
  if (explanation.products.empty()) {
    return absl::FailedPreconditionError(
        "there is no tree to draw, as no product has three factors");
  }
  if (path.ends_with(".txt")) return Write(explanation.text, path);
  const std::string picture = TreeSvg(explanation.products);
  if (path.ends_with(".svg")) return Write(picture, path);
  if (path.ends_with(".png")) return DrawPng(picture, path);
  return absl::InvalidArgumentError(
      absl::StrCat("cannot draw into ", path,
                   ", wanted a name that ends with .svg, .png, .txt or .json"));
}

}  // namespace tensord::cli
