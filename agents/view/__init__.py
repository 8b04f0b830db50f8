"""The debug view: a local page that shows what agents remember and why they forgot, live while they run.

`serving` speaks HTTP and guards the door, `answers` says what each address answers, `readers` keeps agents open for
reading, and `page/` is the page itself: plain HTML, CSS and JavaScript, without anything from elsewhere.
"""
