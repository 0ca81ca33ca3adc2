//! Samples as they came out when `GENERATOR_VERSION` was last raised. If one of these tests fails, every run made
//! before becomes incomparable: raise the version, or take the change back.

use headcount_data::{
    GENERATOR_VERSION, Mqar, Registers, Reverse, Sets, Sort, Split, Task, fingerprint, train_indices,
};

#[test]
fn generators_have_not_changed() {
    assert_eq!(GENERATOR_VERSION, 1);
    let small = Sets { train_examples: None, validation_examples: 10, test_examples: 10 };
    let registers = Task::new(Registers::default());
    let mqar = Task::new(Mqar::default());
    insta::assert_snapshot!(fingerprint(&registers, &small, 0), @"86799e82720b73e35f0dbad469b72214c267a378a6397766eaa01fa66796c6f4");
    insta::assert_snapshot!(fingerprint(&mqar, &small, 0), @"f9617c4eeea2c325db2088a0ae407fb74479cd584bca15dd97782f63c620c6f2");
    let (reverse, sort) = (Task::new(Reverse::default()), Task::new(Sort::default()));
    insta::assert_snapshot!(fingerprint(&reverse, &small, 0), @"61a242ffe4b9f11e3e0e8607fde045b6ee00302989590b32d6f78494cc2cf7fc");
    insta::assert_snapshot!(fingerprint(&sort, &small, 0), @"2f889d6d8f3b120e589867fe8abaa5c235caa4fdc59b4f2880ae5c08d0d8749d");
}

#[test]
fn the_order_has_not_changed() {
    let sets = Sets { train_examples: Some(10), ..Sets::default() };
    assert_eq!(train_indices(&sets, 1, 3, 0, 1, 10), [0, 6, 1, 5, 9, 2, 4, 8, 7, 3]);
}

#[test]
fn registers_can_be_followed() {
    let task = Task::new(Registers { seq_len: 14, ..Registers::default() });
    insta::assert_snapshot!(task.explain(&task.sample(Split::Train, 0, 0)), @r"
    4 registers of 4 values: token = register * 4 + value; * = scored
        t  token  writes     r0 r1 r2 r3   target
        0      1  r0 = 1      1  -  -  -
        1     14  r3 = 2      1  -  -  2
        2      7  r1 = 3      1  3  -  2
        3      8  r2 = 0      1  3  0  2   * 2
        4     15  r3 = 3      1  3  0  3   * 3
        5      7  r1 = 3      1  3  0  3   * 3
        6      6  r1 = 2      1  2  0  3   * 3
        7      0  r0 = 0      0  2  0  3   * 0
        8     12  r3 = 0      0  2  0  0   * 7
        9      2  r0 = 2      2  2  0  0   * 1
       10     11  r2 = 3      2  2  3  0   * 7
       11      0  r0 = 0      0  2  3  0   * 6
       12     14  r3 = 2      0  2  3  2   * 5
       13      5  r1 = 1      0  1  3  2   * 3
    ");
}

#[test]
fn mqar_can_be_followed() {
    let task = Task::new(Mqar { seq_len: 16, pairs: 3, ..Mqar::default() });
    insta::assert_snapshot!(task.explain(&task.sample(Split::Train, 0, 0)), @r"
    3 pairs; keys are 1 to 31, values 32 to 63; * = scored
        t  token  what
        0      7  key 7
        1     39  value 39
        2     28  key 28
        3     53  value 53
        4     18  key 18
        5     33  value 33
        6      7  query 7  * 39
        7     10  fill
        8     28  query 28  * 53
        9     34  fill
       10     42  fill
       11     55  fill
       12     18  query 18  * 33
       13     60  fill
       14     18  fill
       15     58  fill
    ");
}

#[test]
fn reverse_can_be_followed() {
    let task = Task::new(Reverse { max_len: 8, ..Reverse::default() });
    insta::assert_snapshot!(task.explain(&task.sample(Split::Train, 0, 0)), @r"
    source, 6 of at most 8 tokens: 5 15 10 1 4 1; 16 = start or end; * = scored
        t  token  what
        0     16  start    * 1
        1      1  target   * 4
        2      4  target   * 1
        3      1  target   * 10
        4     10  target   * 15
        5     15  target   * 5
        6      5  target   * end
        7      0  padding
        8      0  padding
    ");
}

#[test]
fn sort_can_be_followed() {
    let task = Task::new(Sort { max_len: 8, ..Sort::default() });
    insta::assert_snapshot!(task.explain(&task.sample(Split::Train, 0, 0)), @r"
    source, 7 of at most 8 tokens: 10 3 9 6 7 2 4; 16 = start or end; * = scored
        t  token  what
        0     16  start    * 2
        1      2  target   * 3
        2      3  target   * 4
        3      4  target   * 6
        4      6  target   * 7
        5      7  target   * 9
        6      9  target   * 10
        7     10  target   * end
        8      0  padding
    ");
}
