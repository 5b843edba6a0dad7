import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/scratch.ts',
    // Otherwise each file loads all of aws-cdk-lib again.
    isolate: false,
    // Synthesizing an app loads all of aws-cdk-lib, which takes seconds on a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
