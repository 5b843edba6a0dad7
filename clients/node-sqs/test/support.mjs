import { createRequire } from 'node:module';

const sdk = createRequire(import.meta.url)('@aws-sdk/client-sqs');

/** What the consumers of a test send and print, at a fixed time. */
export function recorded(t, now, answer = () => ({})) {
  const calls = [];
  const lines = [];
  t.mock.method(sdk, 'answer', (command, call) => {
    const name = command.replace('Command', '');
    calls.push([name, call]);
    return answer(name, call);
  });
  t.mock.timers.enable({ apis: ['Date'], now });
  // The test runner reports through the same stream.
  const write = process.stdout.write.bind(process.stdout);
  t.mock.method(process.stdout, 'write', (line, ...rest) => {
    if (typeof line !== 'string' || !line.startsWith('{"timestamp"')) return write(line, ...rest);
    return lines.push(JSON.parse(line)) > 0;
  });
  return { calls, lines };
}
