//! A text takes its own size in memory and little more, while it is read and while it is used.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_data::files::{Text, TextSplit, TextUnit};
use headcount_data::{Dataset, OfFiles, Sets, Split, Task};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator as it came; only sizes are added up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_text_takes_its_size_and_a_tenth() {
    // 16 MiB, with characters of one to four bytes and a document every 240 bytes or so.
    let line =
        "how many heads does it need? viele Köpfe, 多头, 🙂 and more of the same until a document ends here ".repeat(2);
    let size = 16 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.txt");
    let text: String = (0..size / (line.len() + 8)).map(|number| format!("{number:06}{line}\n\n")).collect();
    std::fs::write(&path, &text).unwrap();
    let size = text.len();
    drop(text);

    for (unit, split) in [
        (TextUnit::Bytes, TextSplit::Position),
        (TextUnit::Characters, TextSplit::Position),
        (TextUnit::Characters, TextSplit::Document),
    ] {
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let format = Text { files: "data.txt".into(), unit, split, ..Text::default() };
        let data = Dataset::open(&Task::new(OfFiles::new(format)), &Sets::default(), folder.path()).unwrap();
        let batch = data.samples(Split::Train, 0).batch(&(0..64).collect::<Vec<_>>());
        assert_eq!(batch.scored(), 64 * 64);
        assert_eq!(data.fingerprint(0).len(), 64);
        let most = MOST.load(Ordering::Relaxed) - before;
        // Sixteen bytes a document where there are documents, while lists grow up to three times that.
        let documents = if split == TextSplit::Document { size / 4 } else { 0 };
        assert!(most < size + size / 10 + documents, "{unit:?} {split:?}: {most} bytes for a text of {size}");
    }
}
