import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/scratch.ts',
    // Without isolation, aws-cdk-lib is loaded once instead of once per file.
    isolate: false,
    // Synthesizing an app loads all of aws-cdk-lib, which takes seconds on a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
