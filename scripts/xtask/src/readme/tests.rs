use super::blocks::{Block, Tag, parse};
use super::walk::walk;

#[test]
fn blocks_carry_their_tag_line_and_text() {
    let page = "# Title\n\n```sh serve\nkelp dev\n```\ntext\n```toml\nx = 1\n```\n```sh run\nkelp put a b\nkelp get a\n```\n";
    let expected = vec![
        Block {
            tag: Tag::Serve,
            line: 3,
            text: "kelp dev\n".into(),
        },
        Block {
            tag: Tag::Run,
            line: 10,
            text: "kelp put a b\nkelp get a\n".into(),
        },
    ];
    assert_eq!(parse(page).unwrap(), expected);
}

#[test]
fn shell_block_without_a_tag_is_refused() {
    assert!(parse("```sh\nkelp put a b\n```\n").is_err());
    assert!(parse("```bash sometimes\nkelp put a b\n```\n").is_err());
}

#[test]
fn block_that_is_never_closed_is_refused() {
    assert!(parse("```sh run\nkelp put a b\n").is_err());
}

fn walk_page(page: &str, tags: &[Tag]) -> anyhow::Result<()> {
    walk(&std::env::temp_dir(), &parse(page).unwrap(), tags)
}

const SERVER: &str = "```sh serve\necho starting; echo ready; exec sleep 600\n```\n";

#[test]
fn blocks_run_in_order_as_one_script_beside_the_server() {
    let page = format!(
        "{SERVER}```sh run\nx=1\n```\n```sh extra\nfalse\n```\n```sh run\n[ $x = 1 ]\n```\n"
    );
    walk_page(&page, &[Tag::Run]).unwrap();
    assert!(walk_page(&page, &[Tag::Run, Tag::Extra]).is_err());
}

#[test]
fn command_that_fails_fails_the_walk() {
    assert!(
        walk_page(
            &format!("{SERVER}```sh run\nfalse | true\ntrue\n```\n"),
            &[Tag::Run]
        )
        .is_err()
    );
}

#[test]
fn server_that_ends_before_it_is_ready_fails_the_walk() {
    assert!(walk_page("```sh serve\ntrue\n```\n", &[Tag::Run]).is_err());
}
