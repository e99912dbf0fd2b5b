import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { packageRoot } from './programs.ts'

/** The hardware of the demo's hub. */
export const demoHub = HardwareDescription.parse(
  JSON.parse(readFileSync(join(packageRoot(), 'simulator/hardware/demo-hub.json'), 'utf8')),
)
