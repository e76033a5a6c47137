//! Rust source taken apart just enough for the rules: code, comments, functions, test regions.

use std::ops::Range;

/// One Rust file, with its code and its comments each on their own.
///
/// Both are as long as the file: what does not belong is a blank, line ends stay.
pub struct Source {
    /// The code; comments and the insides of literals are blank.
    pub code: String,
    /// The comments; everything else is blank.
    pub comments: String,
}

/// A function and the lines it covers, counted from one.
pub struct Function {
    /// The name after `fn`.
    pub name: String,
    /// The line of `fn`.
    pub line: usize,
    /// How many lines it has, from `fn` to the closing brace.
    pub line_count: usize,
}

impl Source {
    /// Splits `text` into code and comments.
    pub fn new(text: &str) -> Self {
        let mut splitter = Splitter {
            text: text.chars().collect(),
            at: 0,
            code: String::with_capacity(text.len()),
            comments: String::with_capacity(text.len()),
        };
        splitter.run();
        Self { code: splitter.code, comments: splitter.comments }
    }

    /// Every function with a body.
    pub fn functions(&self) -> Vec<Function> {
        let words = words(&self.code);
        let names = words.windows(2).filter(|pair| pair[0].1 == "fn" && is_next(&self.code, pair));
        let function = |pair: &[(usize, &str)]| {
            let body = item_end(&self.code, pair[1].0)?;
            let covered = &self.code[pair[0].0..body];
            covered.ends_with('}').then(|| Function {
                name: pair[1].1.to_owned(),
                line: line_of(&self.code, pair[0].0),
                line_count: covered.matches('\n').count() + 1,
            })
        };
        names.filter_map(function).collect()
    }

    /// The parts of the code that only tests see: items under `#[cfg(test)]`.
    pub fn test_regions(&self) -> Vec<Range<usize>> {
        let attributes = self.code.match_indices("#[cfg(test)]");
        attributes
            .map(|(at, _)| at..item_end(&self.code, at + 1).unwrap_or(self.code.len()))
            .collect()
    }

    /// Every type that is defined: where, by which keyword, and its name.
    pub fn types(&self) -> Vec<(usize, &str, &str)> {
        let words = words(&self.code);
        let pairs = words.windows(2).filter(|pair| {
            ["struct", "enum", "trait", "union", "type"].contains(&pair[0].1)
                && is_next(&self.code, pair)
        });
        pairs.map(|pair| (pair[0].0, pair[0].1, pair[1].1)).collect()
    }

    /// Where the word `word` stands in the code.
    pub fn places_of<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        words(&self.code).into_iter().filter(move |(_, other)| *other == word).map(|(at, _)| at)
    }
}

/// The line, counted from one, of the byte `at`.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Every identifier and number with its place.
fn words(code: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, character) in code.char_indices().chain([(code.len(), ' ')]) {
        let is_part = character.is_alphanumeric() || character == '_';
        match (start, is_part) {
            (None, true) => start = Some(at),
            (Some(begin), false) => {
                words.push((begin, &code[begin..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// Whether only blanks lie between the two words, which tells `fn name` from the type `fn(A) -> B`.
fn is_next(code: &str, pair: &[(usize, &str)]) -> bool {
    code[pair[0].0 + pair[0].1.len()..pair[1].0].trim().is_empty()
}

/// Where the item ends that begins at `from`: behind its semicolon or its closing brace.
fn item_end(code: &str, from: usize) -> Option<usize> {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (at, character) in code[from..].char_indices() {
        match character {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            '{' => curly += 1,
            '}' => curly -= 1,
            _ => {}
        }
        if matches!(character, '}' | ';') && curly == 0 && round <= 0 {
            return Some(from + at + 1);
        }
    }
    None
}

/// Walks over the characters and gives each to the code or to the comments.
struct Splitter {
    text: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

impl Splitter {
    fn run(&mut self) {
        while self.at < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '/') => self.line_comment(),
                ('/', '*') => self.block_comment(),
                ('"', _) => self.string(),
                ('r', '"' | '#') if self.is_raw_string() => self.raw_string(),
                ('\'', _) => self.quote(),
                _ => self.take_code(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> char {
        self.text.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn line_comment(&mut self) {
        while self.at < self.text.len() && self.peek(0) != '\n' {
            self.take_comment();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_u32;
        while self.at < self.text.len() {
            let pair = (self.peek(0), self.peek(1));
            if pair == ('/', '*') || pair == ('*', '/') {
                depth = if pair.0 == '/' { depth + 1 } else { depth - 1 };
                self.take_comment();
            }
            self.take_comment();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take_code();
        while self.at < self.text.len() && self.peek(0) != '"' {
            if self.peek(0) == '\\' {
                self.take_blank();
            }
            self.take_blank();
        }
        self.take_code();
    }

    /// Whether an `r` begins a raw string: hashes and a quote follow, and no identifier ends in it.
    fn is_raw_string(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map_or(' ', |at| self.text[at]);
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let is_prefixed = matches!(before(1), 'b' | 'c') && !is_word(before(2));
        if is_word(before(1)) && !is_prefixed {
            return false;
        }
        let hash_count = self.text[self.at + 1..].iter().take_while(|each| **each == '#').count();
        self.peek(1 + hash_count) == '"'
    }

    fn raw_string(&mut self) {
        self.take_code();
        let mut hash_count = 0;
        while self.peek(0) == '#' {
            hash_count += 1;
            self.take_code();
        }
        self.take_code();
        while self.at < self.text.len() {
            let is_closed = (1..=hash_count).all(|ahead| self.peek(ahead) == '#');
            if self.peek(0) == '"' && is_closed {
                (0..=hash_count).for_each(|_| self.take_code());
                return;
            }
            self.take_blank();
        }
    }

    /// A character literal, or the quote of a lifetime or label.
    fn quote(&mut self) {
        let is_literal = self.peek(1) == '\\' || self.peek(2) == '\'';
        self.take_code();
        if !is_literal {
            return;
        }
        if self.peek(0) == '\\' {
            self.take_blank();
        }
        self.take_blank();
        while self.at < self.text.len() && self.peek(0) != '\'' {
            self.take_blank();
        }
        self.take_code();
    }

    fn take_code(&mut self) {
        self.take(true, false);
    }

    fn take_comment(&mut self) {
        self.take(false, true);
    }

    fn take_blank(&mut self) {
        self.take(false, false);
    }

    /// Moves one character on; blanks are as many bytes, so that places in both texts agree.
    fn take(&mut self, is_code: bool, is_comment: bool) {
        let Some(&character) = self.text.get(self.at) else { return };
        self.at += 1;
        for (out, is_kept) in [(&mut self.code, is_code), (&mut self.comments, is_comment)] {
            if is_kept || character == '\n' {
                out.push(character);
            } else {
                (0..character.len_utf8()).for_each(|_| out.push(' '));
            }
        }
    }
}
