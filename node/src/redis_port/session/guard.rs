//! What is decided by the name of a command alone, before anything else is looked at.

use super::{Flow, Mark, Session};

const NO_TRANSACTIONS: &str =
    "ERR transactions are not supported yet; nothing is executed until EXEC or DISCARD";

const IN_TRANSACTION: &str =
    "ERR not executed: it follows a MULTI, and transactions are not supported yet";

const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

/// Lines of HTTP that no Redis client sends. A web page can make a browser send commands in the
/// body of a request, behind these.
const HTTP: [&[u8]; 2] = [b"POST", b"Host:"];

/// Whether a command is the beginning of an HTTP request.
pub(super) fn is_http(name: &[u8]) -> bool {
    HTTP.iter().any(|line| name.eq_ignore_ascii_case(line))
}

impl Session {
    /// Refuses a transaction whole: a client that sends one does not look at the reply to MULTI
    /// before it sends the commands, and counts on none of them being executed when that fails.
    /// False for a command that is none of a transaction.
    pub(super) fn refuses_transaction(&mut self, name: &[u8], mark: Mark) -> bool {
        let is = |command: &str| name.eq_ignore_ascii_case(command.as_bytes());
        if is("MULTI") {
            self.in_transaction = true;
            self.error(mark, NO_TRANSACTIONS);
            return true;
        }
        if !self.in_transaction {
            return false;
        }
        if is("RESET") || is("QUIT") {
            self.in_transaction = false;
            return false;
        }
        if is("EXEC") {
            self.in_transaction = false;
            self.error(mark, ABORTED);
        } else if is("DISCARD") {
            self.in_transaction = false;
            self.reply(mark, |encoder| encoder.simple("OK"));
        } else {
            self.error(mark, IN_TRANSACTION);
        }
        true
    }

    /// Ends the connection of a browser, without a word that a page could read.
    pub(super) fn leave_browser(&mut self) -> Flow {
        tracing::warn!("an HTTP request came to the Redis port and was cut off");
        self.context.metrics.failed();
        Flow::Close
    }
}
