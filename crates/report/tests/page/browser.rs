//! A Chromium without a window, driven over a pipe by its DevTools protocol.
//!
//! Messages are JSON that ends in a NUL byte (https://chromedevtools.github.io/devtools-protocol/, `--remote-debugging-pipe`).

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// How long anything may take on a slow machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(180);

/// A browser with one page.
pub struct Browser {
    process: Child,
    commands: Option<ChildStdin>,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// Starts a browser; `None`, after saying so, where there is none.
pub fn start() -> Option<Browser> {
    let program = std::env::var("CHROMIUM").ok().filter(|program| !program.is_empty()).or_else(|| {
        let known = ["chromium", "chromium-browser", "google-chrome"];
        known.into_iter().find(|program| is_installed(program)).map(String::from)
    });
    let Some(program) = program else {
        assert!(
            std::env::var_os("HEADCOUNT_REQUIRE_BROWSER").is_none(),
            "HEADCOUNT_REQUIRE_BROWSER: there is no browser"
        );
        println!("skipped: no chromium, chromium-browser, google-chrome or $CHROMIUM to look at the page with");
        return None;
    };
    Some(Browser::launch(&program))
}

fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

impl Browser {
    fn launch(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The browser reads commands from file 3 and answers on file 4.
        let script = "exec \"$0\" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
            --disable-component-update --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<&0 4>&1 1>/dev/null 2>/dev/null";
        let mut process = Command::new("sh")
            .args(["-c", script, program])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, messages) = channel();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        thread::spawn(move || {
            let mut message = vec![];
            while answers.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let commands = process.stdin.take();
        let mut browser =
            Self { process, commands, messages, session: None, last_id: 0, events: vec![], _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", target)["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol and returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let commands = self.commands.as_mut().unwrap();
        commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        commands.flush().unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let message = match self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("{method}: no answer"),
                Err(RecvTimeoutError::Disconnected) => panic!("{method}: the browser has gone away"),
            };
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Sets width and height in CSS pixels, and the system's theme.
    pub fn looks(&mut self, width: u32, dark: bool) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let theme = if dark { "dark" } else { "light" };
        let features = json!([
            {"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Opens a page of ours and waits until all of it is there.
    #[track_caller]
    pub fn open(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        self.wait("document.documentElement?.dataset.ready === 'true'");
    }

    /// The value of an expression, which may be a promise.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The text of what a selector finds first.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        let value = self.value(&format!("document.querySelector({selector:?})?.textContent"));
        value.as_str().unwrap_or_else(|| panic!("{selector} is not on the page")).to_string()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        // While a page is loaded, its predecessor's answers may be errors.
        let guarded = format!("(() => {{ try {{ return !!({expression}); }} catch {{ return false; }} }})()");
        while self.value(&guarded) != json!(true) {
            assert!(Instant::now() < until, "never true: {expression}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Clicks with the mouse in the middle of what a selector finds first.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(() => {{ const node = document.querySelector({selector:?}); node.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        let [x, y] = [0, 1].map(|index| place[index].as_f64().unwrap());
        self.mouse("mouseMoved", x, y);
        self.mouse("mousePressed", x, y);
        self.mouse("mouseReleased", x, y);
    }

    /// Moves the mouse over a selector's first find, to a share of its width and height.
    #[track_caller]
    pub fn hover(&mut self, selector: &str, across: f64, down: f64) {
        let place = self.value(&format!(
            "(() => {{ const node = document.querySelector({selector:?}); node.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const box = node.getBoundingClientRect(); return [box.x + box.width * {across}, box.y + box.height * {down}]; }})()"
        ));
        self.mouse("mouseMoved", place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let clicks = u8::from(kind != "mouseMoved");
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let parameters = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": clicks});
        self.call("Input.dispatchMouseEvent", parameters);
    }

    /// Puts the focus on a selector's first find and presses keys, named as `KeyboardEvent.key` names them.
    #[track_caller]
    pub fn press(&mut self, selector: &str, keys: &[&str]) {
        self.value(&format!("document.querySelector({selector:?}).focus()"));
        let found = self.value(&format!("document.activeElement === document.querySelector({selector:?})"));
        assert_eq!(found, json!(true), "{selector} takes no focus");
        for key in keys {
            let (code, text) = match *key {
                "ArrowLeft" => (37, ""),
                "ArrowUp" => (38, ""),
                "ArrowRight" => (39, ""),
                "ArrowDown" => (40, ""),
                "Home" => (36, ""),
                "End" => (35, ""),
                " " => (32, " "),
                "Enter" => (13, "\r"),
                "Tab" => (9, ""),
                other => panic!("what is {other}?"),
            };
            let name = if *key == " " { "Space" } else { key };
            let mut event = json!({"type": "keyDown", "key": key, "code": name, "windowsVirtualKeyCode": code});
            if !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event.clone());
            event["type"] = json!("keyUp");
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Panics with everything that a page of ours must never do: errors, messages, requests other than for itself.
    #[track_caller]
    pub fn expect_quiet(&mut self, path: &Path) {
        // What happened before this answer has been told by now.
        self.value("1");
        let own = format!("file://{}", path.display());
        let mut wrong = vec![];
        for event in &self.events {
            let parameters = &event["params"];
            match event["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                    wrong.push(parameters.to_string());
                }
                Some("Network.requestWillBeSent") => {
                    let url = parameters["request"]["url"].as_str().unwrap_or_default();
                    if url != own && !url.starts_with("data:") && !url.starts_with("blob:") {
                        wrong.push(format!("asks for {url}"));
                    }
                }
                _ => {}
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Lets downloads go to a folder.
    pub fn download_to(&mut self, folder: &Path) {
        let session = self.session.take();
        let parameters = json!({"behavior": "allow", "downloadPath": folder.display().to_string()});
        self.call("Browser.setDownloadBehavior", parameters);
        self.session = session;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Without its pipe the browser ends, but not always at once.
        drop(self.commands.take());
        let until = Instant::now() + Duration::from_secs(5);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
