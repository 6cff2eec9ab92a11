// A server of one thread that computes for 5 ms for each page. Usage: node one-thread.js PORT

require("node:http")
  .createServer((_, answer) => {
    const end = performance.now() + 5;
    while (performance.now() < end);
    answer.end("done\n");
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
