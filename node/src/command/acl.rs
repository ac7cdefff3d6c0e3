//! `ACL`: who may do what. There is one user, `default`, who may do everything.
//!
//! For: the answers that tools and client libraries ask for.
//! Not here: passwords (`connection`), other users: there are none yet, and whoever asks for one is told so.

use korum_protocol::command::{Categories, CommandId, ResolveError, resolve, table};
use korum_protocol::resp::{Args, ReplyWriter};
use rand::RngExt;
use sha2::{Digest, Sha256};

use super::args::NOT_AN_INTEGER;
use super::subcommand::{self, integer};
use crate::env::random::Random;

const ONLY_DEFAULT: &str = "ERR Korum has one user, default, who may do everything; CONFIG SET requirepass gives it a \
                            password";
const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via \
                       the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration \
                       file set) in order to store users in the Redis configuration.";
const GENPASS_BITS: &str = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
                            number up to 4096";
/// Bits of a password that nobody asked otherwise for.
const BITS: i64 = 256;
const BITS_MAX: i64 = 4096;

const HELP: &[&str] = &[
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries.",
    "SAVE",
    "    Save the current config to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
];

/// Runs `ACL …`; `password` is empty when none is asked for.
pub fn acl(id: CommandId, args: Args<'_>, password: &str, random: &mut Random, reply: &mut ReplyWriter<'_>) {
    match id {
        CommandId::AclWhoami => reply.bulk(b"default"),
        CommandId::AclUsers => {
            reply.array(1);
            reply.bulk(b"default");
        }
        CommandId::AclList => {
            let password = digest(password).map_or("nopass".to_owned(), |digest| format!("#{digest}"));
            reply.array(1);
            reply.bulk(format!("user default on {password} ~* &* +@all").as_bytes());
        }
        CommandId::AclGetuser => get_user(&args[2], password, reply),
        CommandId::AclCat => categories(args, reply),
        CommandId::AclGenpass => generate(args, random, reply),
        CommandId::AclDryrun => try_out(args, reply),
        CommandId::AclDeluser if args.tail(2).iter().any(|name| name == b"default") => {
            reply.error("ERR The 'default' user cannot be removed");
        }
        CommandId::AclDeluser => reply.integer(0),
        CommandId::AclSetuser => reply.error(ONLY_DEFAULT),
        CommandId::AclLoad | CommandId::AclSave => reply.error(NO_FILE),
        // Nobody is ever denied anything.
        CommandId::AclLog => match (args.len(), args.get(2)) {
            (2, _) => reply.array(0),
            (3, Some(word)) if word.eq_ignore_ascii_case(b"reset") => reply.ok(),
            (3, Some(count)) if integer(count).is_some() => reply.array(0),
            (3, _) => reply.error(NOT_AN_INTEGER),
            _ => too_many(args, reply),
        },
        _ => subcommand::help("ACL", HELP, reply),
    }
}

/// The SHA-256 of a password, in hexadecimal digits; `None` if there is none.
fn digest(password: &str) -> Option<String> {
    let hex = |password: &str| Sha256::digest(password).iter().map(|byte| format!("{byte:02x}")).collect();
    (!password.is_empty()).then(|| hex(password))
}

fn get_user(name: &[u8], password: &str, reply: &mut ReplyWriter<'_>) {
    if name != b"default" {
        return reply.null();
    }
    let digest = digest(password);
    let flags: &[&str] = if digest.is_some() { &["on"] } else { &["on", "nopass"] };
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(digest.iter().len());
    digest.iter().for_each(|digest| reply.bulk(digest.as_bytes()));
    for (what, rules) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk(what.as_bytes());
        reply.bulk(rules.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
}

fn categories(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    let names: Vec<&str> = match (args.len(), args.get(2)) {
        (2, _) => Categories::all().names().collect(),
        (3, Some(given)) => {
            let Some(category) = Categories::named(given) else {
                return reply.error(&format!("ERR Unknown category '{}'", String::from_utf8_lossy(given)));
            };
            let all = table::all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands));
            all.filter(|spec| spec.categories.contains(category)).map(|spec| spec.full_name).collect()
        }
        _ => return too_many(args, reply),
    };
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
}

fn too_many(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    let name = String::from_utf8_lossy(&args[1]);
    reply.error(&format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try ACL HELP."));
}

/// `ACL GENPASS [bits]`: rounded up to whole hexadecimal digits.
fn generate(args: Args<'_>, random: &mut Random, reply: &mut ReplyWriter<'_>) {
    if args.len() > 3 {
        return too_many(args, reply);
    }
    let bits = match args.get(2).map(integer) {
        None => BITS,
        Some(None) => return reply.error(NOT_AN_INTEGER),
        Some(Some(bits @ 1..=BITS_MAX)) => bits,
        Some(Some(_)) => return reply.error(GENPASS_BITS),
    };
    let digit = |_| char::from_digit(random.random_range(0..16), 16).unwrap_or('0');
    let password: String = (0..(bits + 3) / 4).map(digit).collect();
    reply.bulk(password.as_bytes());
}

/// `ACL DRYRUN user command …`
fn try_out(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    if &args[2] != b"default" {
        return reply.error(&format!("ERR User '{}' not found", String::from_utf8_lossy(&args[2])));
    }
    match resolve(&args.tail(3)) {
        Ok(_) => reply.ok(),
        Err(error @ ResolveError::WrongArity(_)) => reply.error_bytes(&error.reply()),
        Err(_) => reply.error(&format!("ERR Command '{}' not found", String::from_utf8_lossy(&args[3]))),
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::resp::ProtocolVersion::{self, Resp2, Resp3};
    use rand::SeedableRng;

    use super::*;
    use crate::command::subcommand::testing::answer;

    fn ask_as(version: ProtocolVersion, line: &str, password: &str) -> String {
        let mut random = Random::seed_from_u64(1);
        answer(line, version, |args, reply| match resolve(&args) {
            Ok(spec) => acl(spec.id, args, password, &mut random, reply),
            Err(error) => reply.error_bytes(&error.reply()),
        })
    }

    fn ask(line: &str) -> String {
        ask_as(Resp2, line, "").replace("\r\n", "|")
    }

    #[test]
    fn answers_are_those_of_redis() {
        for (line, text) in [
            ("acl whoami", "$7|default|"),
            ("acl users", "*1|$7|default|"),
            ("acl list", "*1|$34|user default on nopass ~* &* +@all|"),
            (
                "acl getuser default",
                "*12|$5|flags|*2|$2|on|$6|nopass|$9|passwords|*0|$8|commands|$5|+@all|$4|keys|$2|~*|$8|channels|$2|&*|$9|selectors|*0|",
            ),
            ("acl getuser nobody", "$-1|"),
            ("acl deluser default", "-ERR The 'default' user cannot be removed|"),
            ("acl deluser nobody", ":0|"),
            ("acl cat foo", "-ERR Unknown category 'foo'|"),
            ("acl cat transaction", "*5|$5|multi|$4|exec|$7|discard|$5|watch|$7|unwatch|"),
            ("acl dryrun default GET a", "+OK|"),
            ("acl dryrun default GET", "-ERR wrong number of arguments for 'get' command|"),
            ("acl dryrun default FOO a", "-ERR Command 'FOO' not found|"),
            ("acl dryrun nobody GET a", "-ERR User 'nobody' not found|"),
            ("acl genpass 0", &format!("-{GENPASS_BITS}|")),
            ("acl genpass x", "-ERR value is not an integer or out of range|"),
            ("acl log", "*0|"),
            ("acl log reset", "+OK|"),
            ("acl log x", "-ERR value is not an integer or out of range|"),
            ("acl log x y", "-ERR unknown subcommand or wrong number of arguments for 'log'. Try ACL HELP.|"),
            ("acl save", &format!("-{NO_FILE}|")),
            ("acl foo", "-ERR unknown subcommand 'foo'. Try ACL HELP.|"),
            ("acl whoami x", "-ERR wrong number of arguments for 'acl|whoami' command|"),
        ] {
            assert_eq!(ask(line), text, "{line}");
        }
        assert!(ask("acl cat").starts_with("*21|$8|keyspace|$4|read|"));
        assert!(ask("acl help").starts_with("*29|+ACL <subcommand>"));
        assert!(ask("acl setuser bob on").contains("CONFIG SET requirepass"));
    }

    #[test]
    fn passwords_are_shown_as_digests_and_made_of_as_many_bits_as_wanted() {
        let pw = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
        assert_eq!(
            ask_as(Resp2, "acl list", "pw"),
            format!("*1\r\n$93\r\nuser default on #{pw} ~* &* +@all\r\n")
        );
        assert!(ask_as(Resp3, "acl getuser default", "pw").starts_with(&format!(
            "%6\r\n$5\r\nflags\r\n~1\r\n$2\r\non\r\n$9\r\npasswords\r\n*1\r\n$64\r\n{pw}\r\n"
        )));
        for (line, digits) in [("acl genpass", 64), ("acl genpass 5", 2), ("acl genpass 4096", 1024)] {
            let answer = ask(line);
            let (length, password) = answer.split_once('|').unwrap();
            assert_eq!(length, format!("${digits}"));
            assert!(password.trim_end_matches('|').bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
}
