//! The three sources, their order, and what their errors say.

use std::io::Write;

use super::*;
use crate::config::{Consistency, HostPort};

fn load_with(args: &[&str], env: &[(&str, &str)]) -> Result<Action, ConfigError> {
    let env: std::collections::HashMap<String, String> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let args = std::iter::once("korum-node").chain(args.iter().copied()).map(str::to_owned);
    Config::load(args, &|name| match name {
        "HOME" => Some("/home/me".to_owned()),
        name => env.get(name).cloned(),
    })
}

fn run(args: &[&str], env: &[(&str, &str)]) -> Config {
    match load_with(args, env) {
        Ok(Action::Run(config)) => *config,
        other => panic!("{other:?}"),
    }
}

fn error(args: &[&str], env: &[(&str, &str)]) -> String {
    load_with(args, env).expect_err("should be refused").to_string()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn no_configuration_gives_a_whole_node_on_6379() {
    let config = run(&[], &[]);
    assert_eq!(
        (config.network.port, config.network.cluster_port, config.network.peer_port),
        (6379, 16379, 26379)
    );
    assert_eq!(config.storage.dir, PathBuf::from("/home/me/.local/share/korum/6379"));
    assert_eq!(config.network.announce_host, "127.0.0.1");
    assert!(config.limits.threads >= 1);
}

#[test]
fn flag_wins_over_environment_over_file_over_default() {
    let file = file("[network]\nport = 7001\nmaxclients = 5\n[cluster]\nzone = \"file\"\nweight = 3\n");
    let path = file.path().to_str().unwrap();
    let env = [("KORUM_CONFIG", path), ("KORUM_PORT", "7002"), ("KORUM_ZONE", "env")];
    let config = run(&["--port", "7003"], &env);
    assert_eq!(config.network.port, 7003);
    assert_eq!(config.cluster.zone, "env");
    assert_eq!(config.cluster.weight, 3);
    assert_eq!(config.network.maxclients, 5);
    assert_eq!(config.cluster.partitions, 4096);
    assert_eq!(config.network.cluster_port, 17003);
}

#[test]
fn a_given_cluster_port_is_kept_and_zero_turns_it_off() {
    let config = run(&["--port=7000", "--cluster-port=0"], &[]);
    assert_eq!((config.network.cluster_port, config.network.peer_port), (0, 27000));
}

#[test]
fn other_ports_may_be_announced_than_are_listened_on() {
    let config = run(&["--announce-peer-port=9"], &[("KORUM_ANNOUNCE_CLUSTER_PORT", "8")]);
    let network = &config.network;
    assert_eq!((network.announce_port, network.announce_cluster_port, network.announce_peer_port), (0, 8, 9));
    assert!(error(&["--announce-port=65536"], &[]).contains("announce-port"));
}

#[test]
fn lists_come_repeated_with_commas_and_as_arrays() {
    let wanted =
        vec![HostPort { host: "a".to_owned(), port: 1 }, HostPort { host: "::1".to_owned(), port: 2 }];
    assert_eq!(run(&["--join", "a:1", "--join", "[::1]:2"], &[]).cluster.join, wanted);
    assert_eq!(run(&[], &[("KORUM_JOIN", "a:1, [::1]:2")]).cluster.join, wanted);
    let file = file("[cluster]\njoin = [\"a:1\", \"[::1]:2\"]\n");
    assert_eq!(run(&["--config", file.path().to_str().unwrap()], &[]).cluster.join, wanted);
}

#[test]
fn printed_config_reads_back_as_the_same() {
    let args =
        ["--port=7100", "--bind=0.0.0.0", "--bind=::1", "--join=a:1", "--zone=z", "--consistency=async"];
    let more = [
        "--topology-replicas",
        "--maxmemory=100mb",
        "--lease=1s",
        "--loss-policy=refuse",
        "--log-format=json",
    ];
    let all: Vec<&str> = args.iter().chain(&more).copied().collect();
    let config = run(&all, &[]);
    assert!(config.cluster.topology_replicas);
    assert_eq!(config.cluster.consistency, Consistency::Async);
    let printed = match load_with(&[&all[..], &["--print-config"]].concat(), &[]) {
        Ok(Action::Print(text)) => text,
        other => panic!("{other:?}"),
    };
    let file = file(&printed);
    assert_eq!(run(&["--config", file.path().to_str().unwrap()], &[]), config, "{printed}");
}

#[test]
fn secrets_are_never_shown() {
    let config = run(&["--secret", "s3cret", "--requirepass", "-p4ss"], &[]);
    assert_eq!(config.cluster.secret.0, "s3cret");
    let shown = format!("{}{config:?}", config.to_toml());
    assert!(!shown.contains("s3cret") && !shown.contains("p4ss"), "{shown}");
}

#[test]
fn secret_file_is_read_without_its_line_end() {
    let secret = file("hush\n");
    let path = secret.path().to_str().unwrap();
    assert_eq!(run(&["--secret-file", path], &[]).cluster.secret.0, "hush");
    assert_eq!(error(&["--secret-file", path, "--secret", "x"], &[]), "give secret or secret-file, not both");
    assert!(
        error(&["--secret-file", "/nowhere/x"], &[]).starts_with("cannot read the secret file /nowhere/x")
    );
}

#[test]
fn errors_name_the_setting_the_value_and_what_is_allowed() {
    assert_eq!(
        error(&["--port", "seven"], &[]),
        "--port: 'seven' is not allowed; expected a number from 1 to 65535"
    );
    assert_eq!(
        error(&[], &[("KORUM_PARTITIONS", "100")]),
        "KORUM_PARTITIONS: '100' is not allowed; expected a power of two from 64 to 16384"
    );
    let bad = file("[cluster]\nreplication = 9\n");
    let path = bad.path().to_str().unwrap();
    assert_eq!(
        error(&["--config", path], &[]),
        format!("{path}: cluster.replication: '9' is not allowed; expected a number from 1 to 8")
    );
    let unknown = file("[cluster]\nreplicas = 2\n");
    let text = error(&["--config", unknown.path().to_str().unwrap()], &[]);
    assert!(text.contains("unknown setting 'cluster.replicas'; [cluster] has join, partitions"), "{text}");
    let table = file("[clustre]\n");
    let text = error(&["--config", table.path().to_str().unwrap()], &[]);
    assert!(text.contains("unknown setting 'clustre'; the tables are [network], [storage]"), "{text}");
    let broken = file("port = \n");
    assert!(error(&["--config", broken.path().to_str().unwrap()], &[]).contains("is not TOML"));
    assert!(
        error(&["--config", "/nowhere/k.toml"], &[]).contains("cannot read the config file /nowhere/k.toml")
    );
    assert!(error(&["--nonsense"], &[]).contains("--nonsense"));
}

#[test]
fn ports_beyond_65535_are_refused_with_the_way_out() {
    assert_eq!(
        error(&["--port=50000"], &[]),
        "peer-port would be 50000 + 20000 = 70000, over 65535; give --peer-port, or a --port up to 45535"
    );
    assert_eq!(
        error(&["--port=6379", "--peer-port=16379"], &[]),
        "port 6379, cluster-port 16379 and peer-port 16379 must differ"
    );
}

#[test]
fn timing_that_cannot_work_is_refused() {
    assert!(error(&["--lease=150ms"], &[]).contains("at least two heartbeats"));
    assert!(error(&["--lease=1"], &[]).contains("a time with its unit"));
}

#[test]
fn kubernetes_service_variables_are_not_ports() {
    assert_eq!(run(&[], &[("KORUM_PORT", "tcp://10.0.0.1:6379")]).network.port, 6379);
}

#[test]
fn version_and_help_are_printed() {
    assert_eq!(load_with(&["--version"], &[]).unwrap(), Action::Print(format!("korum-node {VERSION}\n")));
    match load_with(&["--help"], &[]) {
        Ok(Action::Print(text)) => assert!(text.contains("--join") && text.contains("KORUM_JOIN"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_are_unique() {
    let flags: HashSet<&str> = SETTINGS.iter().map(|setting| setting.flag).collect();
    assert_eq!(flags.len(), SETTINGS.len());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_setting_panic(text in ".{0,24}", index in 0..SETTINGS.len()) {
        let mut config = Config::default();
        let _ = (SETTINGS[index].read)(&mut config, &text);
    }
}
