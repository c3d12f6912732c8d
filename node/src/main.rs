//! The `kelp` program: a database node, a development cluster and the commands that talk to them.

use std::process::ExitCode;

fn main() -> ExitCode {
    kelp_node::cli::main()
}
