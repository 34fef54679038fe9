//! Sign-in by links of the operator: on the terminal of the first start, and by `galley sign-in`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use galley_testing::{TestStore, on_both_engines};
use reqwest::header::{COOKIE, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;

use crate::program::{Program, free_port, galley, run, stderr, stdout};

/// A browser that signs in: it keeps the last cookie.
pub(crate) struct SignInBrowser {
    url: String,
    client: Client,
    cookie: String,
}

impl SignInBrowser {
    pub(crate) fn new(program: &Program) -> Self {
        Self::at(&program.url)
    }

    fn at(url: &str) -> Self {
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        Self { url: url.to_owned(), client, cookie: String::new() }
    }

    /// Submits a form of the service's own page.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.client.post(format!("{}{path}", self.url)).body(body);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let request = request.header("origin", &self.url).header(COOKIE, &self.cookie);
        let response = request.send().await.unwrap();
        if let Some(cookie) = response.headers().get(SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        response
    }

    /// Signs in by a link.
    async fn use_link(&mut self, link: &str) -> StatusCode {
        let (_, code) = link.split_once("/sign-in/link?code=").unwrap();
        self.post("/sign-in/link", &[("code", code)]).await.status()
    }

    /// Returns the profile of the signed-in user.
    pub(crate) async fn profile(&self) -> Value {
        let request = self.client.get(format!("{}/profile", self.url));
        let request = request.header("origin", &self.url).header(COOKIE, &self.cookie);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{response:?}");
        response.json().await.unwrap()
    }
}

#[on_both_engines]
async fn the_first_start_on_a_terminal_prints_a_link_that_signs_the_owner_in(store: TestStore) {
    let port = free_port();
    let plain = galley(&store);
    let words = plain.get_args().map(|word| word.to_string_lossy().into_owned());
    let program = std::iter::once(plain.get_program().to_string_lossy().into_owned());
    let line = program.chain(words).collect::<Vec<_>>().join(" ");
    // `script` runs the command on a terminal of its own.
    let mut terminal = Command::new("script");
    terminal.args(["-qefc", &format!("exec {line} --listen 127.0.0.1:{port}"), "/dev/null"]);
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            terminal.env(name, value);
        }
    }
    terminal.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut terminal = terminal.spawn().unwrap();
    let mut link = None;
    let mut lines = BufReader::new(terminal.stdout.take().unwrap()).lines();
    for line in lines.by_ref().map_while(Result::ok) {
        if line.contains("/sign-in/link?code=") {
            link = Some(line.trim().to_owned());
        }
        if line.contains("serving") {
            break;
        }
    }
    std::thread::spawn(move || lines.for_each(drop));
    let link = link.expect("the welcome has a link");
    let mut browser = SignInBrowser::at(&format!("http://127.0.0.1:{port}"));
    assert!(link.starts_with(&browser.url), "{link}");
    assert_eq!(browser.use_link(&link).await, StatusCode::SEE_OTHER);
    assert_eq!(browser.profile().await["email"], "owner@localhost");
    assert_eq!(browser.use_link(&link).await, StatusCode::GONE, "it works once");
    terminal.kill().unwrap();
    terminal.wait().unwrap();
}

#[on_both_engines]
async fn a_command_prints_a_link_that_signs_a_member_in(store: TestStore) {
    let program = Program::serve(&store, 0);
    let print_link = |email: &str| {
        let mut command = galley(&store);
        command.args(["sign-in", "--email", email, "--public-url", &program.url]);
        run(&mut command)
    };
    let printed = print_link("Owner@localhost");
    assert!(printed.status.success(), "{printed:?}");
    let link = stdout(&printed);
    assert!(link.starts_with(&format!("{}/sign-in/link?code=", program.url)), "{link}");
    let mut browser = SignInBrowser::new(&program);
    assert_eq!(browser.use_link(link.trim()).await, StatusCode::SEE_OTHER);
    assert_eq!(browser.profile().await["email"], "owner@localhost");
    for (email, words) in [("nobody@example.org", "no member has the address"), ("x", "--email")] {
        let printed = print_link(email);
        assert!(!printed.status.success() && stdout(&printed).is_empty(), "{printed:?}");
        assert!(stderr(&printed).contains(words), "{printed:?}");
    }
}
