// branchline_options.hpp - part of branchline.hpp: how a session is made.

#ifndef BRANCHLINE_OPTIONS_HPP
#define BRANCHLINE_OPTIONS_HPP

#include "branchline_host.hpp"

#include <string>
#include <utility>
#include <vector>

namespace branchline {

/// How a session is made or opened; each setter returns the object.
class SessionOptions {
public:
  SessionOptions &cwd(std::string value) { return set(cwd_, std::move(value)); }
  SessionOptions &session_dir(std::string value) { return set(session_dir_, std::move(value)); }
  SessionOptions &id(std::string value) { return set(id_, std::move(value)); }
  SessionOptions &name(std::string value) { return set(name_, std::move(value)); }
  SessionOptions &parent_session(std::string value) { return set(parent_session_, std::move(value)); }
  SessionOptions &model(std::string value) { return set(model_, std::move(value)); }
  SessionOptions &thinking_level(std::string value) { return set(thinking_level_, std::move(value)); }
  /// "read-only", "ask" (the default), "workspace" or "allow".
  SessionOptions &permissions(std::string value) { return set(permissions_, std::move(value)); }
  /// Must live until the session is made.
  SessionOptions &permissions(const Permissions &policy) {
    policy_ = policy.get();
    return *this;
  }
  /// Must live until the session is made. May be called for several hooks.
  SessionOptions &tool_hook(const ToolHook &hook) {
    hooks_.push_back(hook.get());
    return *this;
  }
  /// Must live until the session is made. May be called for several budgets.
  SessionOptions &budget(const Budget &budget) {
    budgets_.push_back(budget.get());
    return *this;
  }
  /// What the session reads of its project and tells the model, as JSON; see branchline_session_options.
  SessionOptions &resources(std::string json) { return set(resources_, std::move(json)); }
  SessionOptions &system_prompt(std::string value) { return set(system_prompt_, std::move(value)); }
  SessionOptions &tools(std::vector<std::string> names) {
    tools_ = std::move(names);
    choose_tools_ = true;
    return *this;
  }
  /// A tool of this session alone, which must live until the session is made. Besides `tools`, if those are chosen.
  SessionOptions &custom_tool(const Tool &tool) {
    custom_tools_.push_back(tool.get());
    return *this;
  }
  SessionOptions &durability(branchline_durability value) {
    durability_ = value;
    return *this;
  }
  SessionOptions &in_memory(bool value = true) {
    in_memory_ = value;
    return *this;
  }
  SessionOptions &read_only(bool value = true) {
    read_only_ = value;
    return *this;
  }

  /// Calls `use` with the C struct, whose pointers live that long.
  template <typename Use> void with(Use use) const {
    branchline_session_options options = BRANCHLINE_SESSION_OPTIONS_INIT;
    std::vector<const char *> names;
    for (const std::string &name : tools_) names.push_back(name.c_str());
    options.tool_count = names.size();
    names.push_back(nullptr);
    options.tools = choose_tools_ ? names.data() : nullptr;
    options.custom_tools = custom_tools_.data();
    options.custom_tool_count = custom_tools_.size();
    options.cwd = pointer(cwd_);
    options.session_dir = pointer(session_dir_);
    options.id = pointer(id_);
    options.name = pointer(name_);
    options.parent_session = pointer(parent_session_);
    options.model = pointer(model_);
    options.thinking_level = pointer(thinking_level_);
    options.system_prompt = pointer(system_prompt_);
    options.durability = durability_;
    options.in_memory = in_memory_;
    options.read_only = read_only_;
    options.permissions = pointer(permissions_);
    options.permission_policy = policy_;
    options.budgets = budgets_.data();
    options.budget_count = budgets_.size();
    options.tool_hooks = hooks_.data();
    options.tool_hook_count = hooks_.size();
    options.resources_json = pointer(resources_);
    use(&options);
  }

private:
  /// A string that may be missing.
  using Text = std::pair<bool, std::string>;
  static const char *pointer(const Text &text) { return text.first ? text.second.c_str() : nullptr; }
  SessionOptions &set(Text &text, std::string value) {
    text = Text(true, std::move(value));
    return *this;
  }

  Text cwd_, session_dir_, id_, name_, parent_session_, model_, thinking_level_, system_prompt_, permissions_, resources_;
  const branchline_permissions *policy_ = nullptr;
  std::vector<branchline_budget *> budgets_;
  std::vector<branchline_tool_hook *> hooks_;
  std::vector<std::string> tools_;
  std::vector<branchline_tool *> custom_tools_;
  bool choose_tools_ = false, in_memory_ = false, read_only_ = false;
  branchline_durability durability_ = BRANCHLINE_DURABILITY_NONE;
};

} // namespace branchline

#endif // BRANCHLINE_OPTIONS_HPP
