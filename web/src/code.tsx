// A field for code.
import { useEffect, useRef } from "preact/hooks";
import type { EditorView } from "@codemirror/view";

interface CodeProps {
  text: string;
  language: string;
  label: string;
  numbered?: boolean;
  readOnly?: boolean;
  onChange: (text: string) => void;
  onRun?: () => void;
  onSave?: () => void;
}

/** `text` is what it begins with; another `language` or `label` begins anew. */
export function Code(props: CodeProps) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    let view: EditorView | undefined;
    let over = false;
    void import("./editor").then(({ createEditor }) => {
      if (over) return;
      view = createEditor(place.current!, {
        text: latest.current.text,
        language: props.language,
        label: props.label,
        numbered: props.numbered ?? false,
        readOnly: props.readOnly ?? false,
        onChange: (text) => latest.current.onChange(text),
        ...(props.onRun && { onRun: () => latest.current.onRun?.() }),
        ...(props.onSave && { onSave: () => latest.current.onSave?.() }),
      });
    });
    return () => {
      over = true;
      view?.destroy();
    };
  }, [props.language, props.label]);
  return <div class="code" ref={place} />;
}
