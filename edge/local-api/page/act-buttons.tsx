import type { JSX } from 'preact'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { nameOf } from '../../../protocol/ui/picture-model.ts'
import { act, running, state } from './store.ts'

interface ActProps {
  device: string
  what: string
  path: string
  body?: object
  /** The body of the act that takes it back. */
  undo?: object
}

/** An act without a way back: the person holds the button, or confirms. */
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

/** A button for one act. It shows that the hub is executing the act. */
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

/** The commands below a path of the hub (`bins/{bin}/`), for the device with this number. A kept state may have none. */
export function Commands({
  device,
  of,
  number,
}: {
  device: string
  of: string
  number: number
}): JSX.Element {
  const found = (state.value!.commands ?? []).filter(({ path }) => path.startsWith(of))
  return (
    <>
      {found.map(({ path, button, isSafe, defaults = {} }) => {
        const Button = isSafe ? Do : Held
        const at = path.replace(/\{\w+\}/, String(number))
        return <Button key={path} device={device} what={button} path={at} body={defaults} />
      })}
    </>
  )
}
