import type { JSX } from 'preact'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { nameOf } from '../../../protocol/ui/picture-model.ts'
import { act, running, state } from './store.ts'

interface ActProps {
  device: string
  what: string
  path: string
  body?: object
  /** The body of the action that reverts it. */
  undo?: object
}

/** A button for an action that cannot be reverted: the person holds the button, or confirms. */
export function Held({ device, what, path, body = {} }: ActProps): JSX.Element {
  const title = `${nameOf(device)}, ${what.toLowerCase()}`
  return (
    <HoldButton
      label={`${what}, ${nameOf(device)}`}
      isBusy={running.value.has(title)}
      onHeld={() => void act(title, path, body)}
    >
      {what}
    </HoldButton>
  )
}

/** A button for one action. It shows that the hub is executing the action. */
export function Do({ device, what, path, body = {}, undo }: ActProps): JSX.Element {
  const title = `${nameOf(device)}, ${what.toLowerCase()}`
  const isRunning = running.value.has(title)
  const how = undo && { label: 'Undo', run: () => void act(`Undo: ${title}`, path, undo) }
  return (
    <button
      class="btn"
      aria-busy={isRunning}
      aria-label={`${what}, ${nameOf(device)}`}
      onClick={() => void (isRunning || act(title, path, body, how ?? 'aloud'))}
    >
      {isRunning && <span class="loading loading-spinner loading-xs" aria-hidden="true" />}
      {what}
    </button>
  )
}

/**
 * The commands below a path of the hub (`bins/{bin}/`) with their parameters. A number is part of the path;
 * other parameters are in the body. A stored state of an older page has no commands.
 */
export function Commands(props: {
  device: string
  of: string
  parameters: Readonly<Record<string, unknown>>
}): JSX.Element {
  const { device, of, parameters } = props
  const found = (state.value!.commands ?? []).filter(({ path }) => path.startsWith(of))
  return (
    <>
      {found.map(({ path, button, isSafe, defaults }) => {
        const Button = isSafe ? Do : Held
        const inBody = Object.entries(parameters).filter(([key]) => !path.includes(`{${key}}`))
        const at = path.replace(/\{(\w+)\}/, (_, key: string) => String(parameters[key]))
        const body = { ...defaults, ...Object.fromEntries(inBody) }
        return <Button key={path} device={device} what={button} path={at} body={body} />
      })}
    </>
  )
}
