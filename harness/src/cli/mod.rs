//! The command line: what was typed ([`args`]) and what it leads to.

pub mod args;
mod calibrate;
mod check;
mod claims;
mod configure;
mod conform;
mod dev;
mod device;
mod discover;
mod explain;
mod help;
mod import;
mod init;
mod inspect;
mod list;
mod matrix;
mod reference;
mod replay;
mod report;
mod reports;
mod run;
mod select;
mod shrink;
mod tiers;
mod traits;
mod versions;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, FromArgMatches};

use crate::exit::Exit;
use crate::report::{say, stdout};
use args::{Cli, Command};

/// Runs the command in `arguments`, the program's name first.
pub fn main<I, T>(arguments: I) -> Exit
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let parsed = help::grouped(Cli::command())
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is the only way in which this can fail.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            };
        }
    };
    let result = match cli.command {
        Command::Check(args) => check::check(*args),
        Command::Run(args) => run::run(*args),
        Command::List(args) => list::list(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Report(args) => report::report(&args),
        Command::Import(command) => import::import(&command),
        Command::Reference(command) => reference::reference(&command),
        Command::Replay(args) => replay::replay(&args),
        Command::Shrink(args) => shrink::shrink(*args),
        Command::Init(args) => init::init(args),
        Command::Claims(args) => claims::claims(*args),
        Command::Matrix(args) => matrix::matrix(*args),
        Command::Schema => schema(),
        Command::Discover(args) => discover::discover(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Conform(args) => conform::conform(&args),
        Command::Dev(command) => dev::dev(&command),
        Command::Traits(args) => traits::traits(args),
        Command::Device(args) => device::device(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "dnn-assay", &mut stdout());
            Ok(Exit::Ok)
        }
        Command::Man => man(),
    };
    crate::plan::remove_unpacked();
    result.unwrap_or_else(|error| error.print())
}

/// Whether messages on standard error may have colour.
fn is_coloured() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// The JSON Schema of the configuration.
fn schema() -> Result<Exit, Error> {
    let text = dnn_assay_suites::file("schemas/dnn-assay.schema.json");
    let text = text.ok_or_else(|| Error::infrastructure("the schema is not in this binary"))?;
    stdout().write_all(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// The manual page of the program and of each subcommand.
fn man() -> Result<Exit, Error> {
    let command = Cli::command();
    let mut out = stdout();
    clap_mangen::Man::new(command.clone()).render(&mut out)?;
    for sub in command.get_subcommands() {
        let name = format!("dnn-assay-{}", sub.get_name());
        let sub = sub.clone().name(name);
        clap_mangen::Man::new(sub).render(&mut out)?;
    }
    Ok(Exit::Ok)
}

/// A command that could not do what it was asked.
#[derive(Debug)]
pub struct Error {
    exit: Exit,
    message: String,
}

impl Error {
    /// Wrong usage or configuration: exit code 2.
    fn usage(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.to_string(),
        }
    }

    /// A plugin cannot be loaded: exit code 3.
    fn plugin(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Plugin,
            message: message.to_string(),
        }
    }

    /// The machine failed: exit code 5.
    fn infrastructure(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Infrastructure,
            message: message.to_string(),
        }
    }

    fn print(self) -> Exit {
        let message = self.message.trim_start_matches("error: ");
        say(format_args!("error: {message}"));
        self.exit
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::infrastructure(error)
    }
}
