use super::blocks::{Block, Tag, parse};

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
