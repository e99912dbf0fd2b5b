import type { Reporter, TestModule } from 'vitest/node'

/**
 * Lists at the end of a run each test that passed only at its second attempt, with the first error: a
 * finding, although the run passes.
 */
export class SecondTryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules)
      for (const test of module.children.allTests('passed')) {
        if (!test.diagnostic()?.flaky) continue
        const said = (test.result().errors ?? []).map(({ stack, message }) => stack ?? message)
        console.log(
          `Passed at the second try only: ${module.relativeModuleId} > ${test.fullName}\n${said.join('\n')}`,
        )
      }
  }
}
