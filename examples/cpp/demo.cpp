// The tour of branchline in C++11: a session, a listener, a second branch, a fork.
//
//   sh examples/cpp/run.sh                                                      builds the library and runs it
//   c++ examples/cpp/demo.cpp $(pkg-config --cflags --libs branchline) -o demo   with an installed one (ffi/install.sh), and then
//   ./demo SOME_DIRECTORY
#include <branchline.hpp>

#include <iostream>

int main(int argc, char **argv) try {
  const std::string directory = argc > 1 ? argv[1] : ".";
  branchline::Engine engine;
  branchline::SessionOptions options;
  options.cwd(directory).session_dir(directory).model("scripted/demo").name("C++ demo").permissions("allow");
  branchline::Session session = engine.create_session(options);

  std::string question; // the entry of the last thing a user said
  session.on_event([&question](const branchline::Event &event) {
    if (event.is_text_delta()) std::cout << event.text() << std::flush;
    if (event.type() == BRANCHLINE_EVENT_TOOL_EXECUTION_END) std::cout << "\n  [" << event.tool_name() << "]\n";
    if (event.type() == BRANCHLINE_EVENT_MESSAGE_END && event.json().find("\"role\":\"user\"") != std::string::npos) {
      question = event.entry_id();
    }
  });

  std::cout << "> What is in this folder?\n";
  session.run("What is in this folder?");

  const std::string first = question;
  std::cout << "\n\nback to before it: " << session.navigate(first) << "\n> Which file would you read first?\n";
  {
    branchline::Events events = session.events(); // the other way: the program takes them, many at once
    session.prompt("Which file would you read first?");
    bool settled = false;
    const auto look = [&settled](const branchline::Event &event) {
      settled = settled || event.type() == BRANCHLINE_EVENT_AGENT_SETTLED;
    };
    while (!settled && !events.ended()) events.next_batch(64, BRANCHLINE_WAIT_FOREVER, look);
  }
  {
    branchline::Session brief = session.clone();
    branchline::Events events = brief.events();
    brief.close();
    while (!events.ended()) events.next(BRANCHLINE_WAIT_FOREVER, [](const branchline::Event &) {}); // up to the end
  }

  branchline::Session fork = session.fork(first, BRANCHLINE_FORK_AT);
  std::cout << "\n\nleaf:   " << session.leaf() << "\nbranch: " << session.tree_branch() << "\nother:  "
            << session.tree_branch(first) << "\nfork:   " << fork.path() << "\n";

  // The tools as functions, and one of the program's own.
  branchline::Tool clock = engine.tool(R"({"name":"clock","description":"The time."})",
                                       [](branchline::Request request) { request.complete("\"tea time\""); });
  branchline::Toolbox tools = engine.toolbox(directory);
  tools.add(clock);
  std::cout << "\nls:    " << tools.call("ls", R"({"limit":3})") << "\nclock: " << tools.call("clock") << "\n";

  // A model of the program's own: what an editor has access to, or a test.
  engine.add_host_provider(R"({"name":"parrot","models":["grey"]})", [](branchline::Request request) {
    request.push("\"Pretty \"");
    request.complete(R"({"type":"text_delta","delta":"Polly."})");
  });
  branchline::Session cage = engine.create_session(branchline::SessionOptions().in_memory().model("parrot/grey").resources(
      R"({"guidelines":["Never bite."]})"));
  cage.run("Who is pretty?");
  std::cout << "parrot: " << cage.entry(cage.leaf()) << "\n";
  if (cage.entry(cage.leaf()).find("Pretty Polly.") == std::string::npos ||
      cage.resources().find("Never bite.") == std::string::npos ||
      engine.find_model("grey").find("parrot/grey") == std::string::npos) {
    std::cerr << "demo: the parrot is not itself\n";
    return 1;
  }
  engine.add_replay("tape", session.path());
  if (engine.replay_divergence("tape") != "null") return 1;

  try {
    engine.open_session(session.path()); // it is open here already
  } catch (const branchline::Error &error) {
    std::cout << error.name() << ": " << error.what() << "\n";
  }
  session.set_tools({"read", "ls"});
  return engine.shutdown() ? 0 : 1;
} catch (const branchline::Error &error) {
  std::cerr << "demo: " << error.name() << ": " << error.what() << "\n";
  return 1;
}
