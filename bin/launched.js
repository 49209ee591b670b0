// What the launcher (parley.js) runs on the Node that Parley brings. A killed launcher cannot pass a signal on, but the
// channel to it closes: then the command stops, as after Ctrl-C.
process.on('disconnect', () => process.kill(process.pid, 'SIGINT'))
// The channel alone keeps no command running.
process.channel?.unref()
await import('./main.js')
