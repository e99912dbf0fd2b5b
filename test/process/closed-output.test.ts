import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { commandOf } from '../support/programs.ts'

test.each([['cloud/cli/main', 'hubs'], ['edge/enrolment/enrol-main'], ['simulator/demo/try-main']])(
  '%s ends without an error if nobody reads its output',
  async (program, ...args) => {
    const [node, ...file] = commandOf(program)
    const child = spawn(node, [...file, ...args, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    const [errors, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect({ errors, status: status as number }).toEqual({ errors: '', status: 0 })
  },
)
