// Runs the script named by the first argument as a child that cannot outlive
// its parent and that says which port it was given.
//
// The parent holds the other end of stdin: however the parent ends, SIGKILL
// included, stdin ends with it. This works on every operating system.
process.stdin.on("end", () => process.exit(0)).resume();

const { Server } = require("net");
const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  this.once("listening", () => console.log(`listening on port ${this.address().port}`));
  return listen.apply(this, args);
};

require(process.argv[1]);
