//! Files that change, appear and disappear while they are served, readers of any speed, and what the cache keeps.

use super::*;

/// Requests `target` repeatedly while `change` happens; `check` gets the responses before, within the same second, and
/// after it.
fn around(tree: &Rc<Tree>, target: &'static str, change: fn(&Tree), check: fn([String; 3])) {
    let plan = tree.plan_with(PathMatch::Any, &["index.html", "index.htm"], false);
    let tree = Rc::clone(tree);
    on_simulated_cores(|site| {
        let (plan, tree) = (plan.clone(), Rc::clone(&tree));
        async move {
            fs::remove_dir_all(tree.0.path()).unwrap();
            tree.write("file", b"before");
            tree.write("index.htm", b"before");
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let mut responses = Vec::new();
            for wait in [Duration::ZERO, FILE_CHECK / 4, FILE_CHECK] {
                site.core.sleep(wait).await;
                client.send(request("GET", target, "").as_bytes()).await;
                responses.push(client.receive_message().await);
                if responses.len() == 1 {
                    change(&tree);
                }
            }
            check(responses.try_into().unwrap());
        }
    });
}

#[test]
fn file_change_is_detected_within_one_second() {
    let tree = Rc::new(Tree::new());
    let edited = |[before, soon, after]: [String; 3]| {
        assert_eq!((body(&before), body(&after)), ("before", "behind"));
        assert!(["before", "behind"].contains(&body(&soon)));
        assert_ne!(field(&before, "ETag"), None);
    };
    // Same length, and mtime set back: only ctime differs.
    around(&tree, "/file", |tree| tree.write("file", b"behind"), edited);
    around(
        &tree,
        "/file",
        |tree| {
            tree.write("new", b"behind");
            fs::rename(tree.path("new"), tree.path("file")).unwrap();
        },
        edited,
    );
    around(
        &tree,
        "/",
        |tree| tree.write("index.htm", b"behind"),
        edited,
    );
    // An index file with precedence over the one in use.
    around(
        &tree,
        "/",
        |tree| tree.write("index.html", b"behind"),
        edited,
    );
    let gone = |[before, _, after]: [String; 3]| {
        assert_eq!((status(&before), status(&after)), (200, 404));
    };
    around(
        &tree,
        "/file",
        |tree| fs::remove_file(tree.path("file")).unwrap(),
        gone,
    );
    let redirected = |[_, _, after]: [String; 3]| assert_eq!(status(&after), 301);
    around(
        &tree,
        "/file",
        |tree| {
            fs::remove_file(tree.path("file")).unwrap();
            fs::create_dir(tree.path("file")).unwrap();
        },
        redirected,
    );
    // A large file is checked on every request.
    let grown = |[_, soon, after]: [String; 3]| {
        assert_eq!(field(&soon, "Content-Length"), Some("20000"));
        assert_eq!(field(&after, "Content-Length"), Some("20000"));
    };
    around(
        &tree,
        "/file",
        |tree| tree.write_sparse("file", 20_000),
        |[_, _, after]| assert_eq!(field(&after, "Content-Length"), Some("20000")),
    );
    let large = Rc::new(Tree::new());
    let plan = large.plan();
    on_simulated_cores(|site| {
        let (plan, tree) = (plan.clone(), Rc::clone(&large));
        async move {
            tree.write_sparse("file", 30_000);
            let mut client = site.connect(&site.serve(&plan)).await;
            let mut responses = Vec::new();
            for _ in 0..3 {
                client.send(request("GET", "/file", "").as_bytes()).await;
                responses.push(client.receive_message().await);
                tree.write_sparse("file", 20_000);
            }
            grown(responses.try_into().unwrap());
        }
    });
}

#[test]
fn swapped_root_symlink_is_followed() {
    let releases = Rc::new(Tree::new());
    releases.write("1/file", b"first");
    releases.write("2/file", b"second");
    let mut plan = releases.plan();
    plan.routes[0].action = Action::Files(plan::Files::in_directory(releases.path("current")));
    on_simulated_cores(|site| {
        let (plan, releases) = (plan.clone(), Rc::clone(&releases));
        async move {
            let swap = |release| {
                symlink(release, releases.path("new")).unwrap();
                fs::rename(releases.path("new"), releases.path("current")).unwrap();
            };
            swap("1");
            let mut client = site.connect(&site.serve(&plan)).await;
            for content in ["first", "second", "second"] {
                client.send(request("GET", "/file", "").as_bytes()).await;
                assert_eq!(body(&client.receive_message().await), content);
                match content {
                    "first" => swap("2"),
                    // Between the two steps of a non-atomic swap, the cached file is still served.
                    _ => fs::remove_file(releases.path("current")).unwrap_or(()),
                }
                site.core.sleep(FILE_CHECK).await;
            }
        }
    });
}

#[test]
fn new_file_is_served_immediately() {
    let tree = Rc::new(Tree::new());
    let plan = tree.plan();
    on_every_driver(|site| {
        let (plan, tree) = (plan.clone(), Rc::clone(&tree));
        async move {
            let mut client = site.connect(&site.serve(&plan)).await;
            for expected in [404, 200] {
                client.send(request("GET", "/late", "").as_bytes()).await;
                assert_eq!(status(&client.receive_message().await), expected);
                tree.write("late", b"here");
            }
            fs::remove_file(tree.path("late")).unwrap();
        }
    });
}

#[test]
fn truncated_file_aborts_response() {
    let tree = Rc::new(Tree::new());
    let plan = tree.plan();
    on_every_driver(|site| {
        let (plan, tree) = (plan.clone(), Rc::clone(&tree));
        async move {
            const LENGTH: usize = 64 << 20;
            tree.write_sparse("file", LENGTH as u64);
            let mut client = site.connect(&site.serve(&plan)).await;
            let twice = request("GET", "/file", "").repeat(2);
            client.send(twice.as_bytes()).await;
            let head = client.receive_until(b"\r\n\r\n").await;
            let head = String::from_utf8(head).unwrap();
            assert_eq!(field(&head, "Content-Length"), Some("67108864"));
            tree.write_sparse("file", 1000);
            let received = client.receive_all().await;
            assert!(received.len() < LENGTH, "{} bytes", received.len());
            assert!(
                received.iter().all(|&byte| byte == 0),
                "file and nothing else"
            );
        }
    });
}

#[test]
fn replaced_file_is_sent_completely_in_old_version() {
    let tree = Rc::new(Tree::new());
    let plan = tree.plan();
    on_every_driver(|site| {
        let (plan, tree) = (plan.clone(), Rc::clone(&tree));
        async move {
            tree.write("file", &pattern(200_000));
            let mut client = site.connect(&site.serve(&plan)).await;
            client.send(request("GET", "/file", "").as_bytes()).await;
            client.receive_until(b"\r\n\r\n").await;
            tree.write("new", b"short");
            fs::rename(tree.path("new"), tree.path("file")).unwrap();
            assert!(client.receive_exactly(200_000).await == pattern(200_000));
        }
    });
}

#[test]
fn slow_reader_is_served_while_it_reads() {
    let tree = Tree::new();
    tree.write("file", &pattern(600_000));
    let plan = tree.plan();
    on_simulated_cores(|site| {
        let plan = plan.clone();
        async move {
            let mut client = site.connect(&site.serve(&plan)).await;
            client.send(request("GET", "/file", "").as_bytes()).await;
            client.receive_until(b"\r\n\r\n").await;
            // The slowest rate that counts as progress: ten times the timeout in total.
            let wait = plan.timeouts.client_send * 9 / 10;
            for part in pattern(600_000).chunks(100_000) {
                site.core.sleep(wait).await;
                client
                    .stream
                    .set_deadline(Some(site.core.now() + Duration::from_secs(10)));
                assert!(client.receive_exactly(part.len()).await == part);
            }
        }
    });
}

#[test]
fn stalled_reader_is_cut_off() {
    let tree = Tree::new();
    tree.write("file", &pattern(600_000));
    let plan = tree.plan();
    on_simulated_cores(|site| {
        let plan = plan.clone();
        async move {
            let mut client = site.connect(&site.serve(&plan)).await;
            client.send(request("GET", "/file", "").as_bytes()).await;
            client.receive_until(b"\r\n\r\n").await;
            site.core.sleep(plan.timeouts.client_send * 11 / 10).await;
            assert!(client.receive_all().await.len() < 600_000);
        }
    });
}

#[test]
fn unused_files_are_evicted() {
    let tree = Tree::of(&["small"]);
    tree.write_sparse("large", 100_000);
    let plan = tree.plan();
    on_simulated_cores(|site| {
        let plan = plan.clone();
        async move {
            let (address, worker) = site.serve_worker(&plan);
            let mut client = site.connect(&address).await;
            for name in ["/small", "/large"] {
                client.send(request("HEAD", name, "").as_bytes()).await;
                client.receive_until(b"\r\n\r\n").await;
            }
            assert_eq!(cache_of(&worker).counts(), (2, 1));
            site.core
                .sleep(FILE_IDLE * 2 + Duration::from_secs(1))
                .await;
            assert_eq!(cache_of(&worker).counts(), (0, 0));
            // And it is filled again.
            let mut client = site.connect(&address).await;
            client.send(request("HEAD", "/small", "").as_bytes()).await;
            client.receive_until(b"\r\n\r\n").await;
            assert_eq!(cache_of(&worker).counts(), (1, 0));
        }
    });
}

#[test]
fn unused_cache_closes_files_immediately() {
    let tree = Tree::new();
    tree.write_sparse("large", 100_000);
    on_simulated_cores(|site| {
        let root = Root::open(tree.0.path()).expect("a directory");
        let cache = Cache::new(root, &[]);
        async move {
            let Ok(entry) = cache.find(b"large", &site.core) else {
                panic!("it is not found");
            };
            assert_eq!(cache.counts(), (1, 1));
            let kept = (Rc::downgrade(&cache), Rc::downgrade(&entry));
            drop((cache, entry));
            site.core.yield_now().await;
            assert!(kept.0.upgrade().is_none() && kept.1.upgrade().is_none());
        }
    });
}

#[test]
fn cache_limits_files_and_descriptors() {
    let tree = Tree::new();
    for file in 0..FILES_MAX + 10 {
        tree.write(format!("small-{file}"), b"x");
    }
    for file in 0..FILES_OPEN_MAX + 10 {
        tree.write_sparse(&format!("large-{file}"), 100_000);
    }
    let core = onrush_engine::Core::simulated(onrush_engine::Simulation::with_seed(1));
    let cache = Cache::new(Root::open(tree.0.path()).unwrap(), &[]);
    for file in 0..FILES_OPEN_MAX + 10 {
        cache
            .find(format!("large-{file}").as_bytes(), &core)
            .ok()
            .unwrap();
    }
    assert_eq!(cache.counts(), (FILES_OPEN_MAX, FILES_OPEN_MAX));
    for file in 0..FILES_MAX + 10 {
        cache
            .find(format!("small-{file}").as_bytes(), &core)
            .ok()
            .unwrap();
    }
    assert_eq!(cache.counts(), (FILES_MAX, FILES_OPEN_MAX));
}
