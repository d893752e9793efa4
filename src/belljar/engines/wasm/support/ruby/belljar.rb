# Loaded into the template of Ruby. The WebAssembly of Ruby is a library without Ruby's own main program, child processes
# and file modes; the sandbox has the last two. A request is the opening of a file below /.belljar: the operation, then
# its arguments in hexadecimal (see channel.py). The answer is what is read from it.
require "prism"

module Belljar
  SHELL_WORDS = %w[. : alias bg break case cd command continue do done elif else esac eval exec exit export fg fi for getopts
    hash if in jobs read readonly return set shift then times trap type ulimit umask unalias unset until wait while].freeze

  # Methods of the last line that -n and -p bring. A method of ours could not set its caller's $_.
  EDITS = %i[sub gsub chomp chop].freeze

  # How a command ended; Process::Status can't be made.
  class Status
    attr_reader :pid, :to_i

    def initialize(status, pid = 0)
      @to_i = status
      @pid = pid
    end

    def exited? = (@to_i & 127).zero?
    def signaled? = !exited?
    def exitstatus = exited? ? @to_i >> 8 : nil
    def termsig = signaled? ? @to_i & 127 : nil
    def stopped? = false
    def coredump? = false
    def success? = exited? ? @to_i.zero? : nil
    def ==(other) = @to_i == (other.is_a?(Status) ? other.to_i : other)
    def to_s = "pid #{@pid} " + (exited? ? "exit #{exitstatus}" : "SIG#{Signal.signame(termsig)} (signal #{termsig})")
    def inspect = "#<Process::Status: #{self}>"
  end

  # A pipe to a command: a file whose closing waits for the command.
  class Pipe < File
    def close
      return if closed?
      super
      $belljar_status = Status.new(Belljar.ask("status").to_i)
      nil
    end

    def pid = 0
  end

  @at_exit = []
  @once = {}

  class << self
    def path(operation, *words) = ["/.belljar", operation, *words.map { |word| word.to_s.b.unpack1("H*") }].join("/")
    def ask(...) = File.binread(path(...))
    def flush = [$stdout, $stderr, STDOUT, STDERR].each { |io| io.flush if io.respond_to?(:flush) && !(io.respond_to?(:closed?) && io.closed?) }

    # The words of a command as `system`, `spawn` and `IO.popen` take them, with its environment first.
    def command(words, options = {})
      env = ENV.to_h
      if words.first.is_a?(Hash)
        words.first.each { |name, value| value.nil? ? env.delete(name) : env[name] = value }
        words = words.drop(1)
      end
      words = words.first if words.size == 1 && words.first.is_a?(Array)
      words = words.map { |word| word.is_a?(Array) ? word.first : word.to_path rescue word.to_str }
      if words.size == 1 && SHELL_WORDS.include?(words.first.split.first)
        words = ["/bin/sh", "-c", words.first]
      end
      redirected = redirections(options)
      unless redirected.empty?
        words = words.size == 1 ? ["/bin/sh", "-c", "#{redirected}\n#{words.first}"] : ["/bin/sh", "-c", "#{redirected}\nexec \"$@\"", "sh", *words]
      end
      [env.size, *env.map { |name, value| "#{name}=#{value}" }, *words]
    end

    def quoted(text) = "'" + text.to_s.gsub("'", "'\\\\''") + "'"

    # Shell commands that do what options of `spawn` ask for.
    def redirections(options)
      # Names of our own descriptors mean what these are now, so they come first; the child's are the last.
      options.sort_by { |_, value| value.is_a?(Array) && value.first == :child ? 2 : value.is_a?(String) || value.is_a?(Array) ? 1 : 0 }.map do |key, value|
        case key
        when :chdir then "cd -- #{quoted(value)} || exit 127"
        when :in, :out, :err, 0, 1, 2, STDIN, STDOUT, STDERR then redirection(key, value)
        when Array then key.map { |one| redirection(one, value) }.join("\n")
        when :exception, :close_others, :unsetenv_others, :pgroup, :umask then ""
        else raise NotImplementedError, "the option #{key.inspect} of a command can't be had in WebAssembly"
        end
      end.reject(&:empty?).join("\n")
    end

    def number(io) = { in: 0, out: 1, err: 2 }[io] || (io.is_a?(IO) ? io.fileno : io)

    def redirection(key, value)
      fd = number(key)
      case value
      when :close then "exec #{fd}>&-"
      when Array
        return "exec #{fd}>&#{number(value.last)}" if value.first == :child
        "exec #{fd}#{{ "r" => "<", "a" => ">>" }.fetch(value[1].to_s[0], ">")}#{quoted(value.first)}"
      when String then "exec #{fd}#{fd.zero? ? "<" : ">"}#{quoted(value)}"
      when IO then value.is_a?(File) && value.fileno > 2 ? "exec #{fd}#{fd.zero? ? "<" : ">>"}#{quoted(File.expand_path(value.path))}" : "exec #{fd}>&#{value.fileno}"
      else "exec #{fd}>&#{number(value)}"
      end
    end

    def run(words, options)
      flush
      $belljar_status = Status.new(ask("run", *command(words, options)).to_i)
    rescue SystemCallError
      $belljar_status = Status.new(127 << 8)
      raise
    end

    def capture(words, options = {})
      flush
      status, output = ask("capture", *command(words, options)).split("\n", 2)
      $belljar_status = Status.new(status.to_i)
      output.force_encoding(Encoding.default_external)
    rescue SystemCallError => error
      $belljar_status = Status.new(127 << 8)
      raise error.class, words.last.to_s.split.first
    end

    def open_pipe(words, mode, options)
      flush
      mode = mode.to_s
      reads = !mode.match?(/[wa+]/)
      raise NotImplementedError, "a pipe is for reading or for writing in WebAssembly, not for both" if mode.include?("+")
      Pipe.new(path(reads ? "reader" : "writer", *command(words, options)), reads ? "r" : "w")
    rescue SystemCallError => error
      raise error.class, words.last.to_s.split.first
    end

    def at_exit(&block) = @at_exit.push(block).last
    def once(place, &block) = @once[place] ||= at_exit(&block)

    # A program's END blocks, which are to run when ours ends, and what is special inside the loop of -n and -p: BEGIN
    # blocks run before it, calls without a receiver change the last line. What goes before the loop, and the rest.
    def lift(source, loops:)
      first = +""
      edits = []
      Prism.parse(source).value.statements.body.each { |node| collect(node, source, loops ? first : nil, edits) }
      edits.sort.reverse_each { |from, to, text| source = source.byteslice(0, from) + text + source.byteslice(to..) }
      [first, source]
    end

    def collect(node, source, first, edits)
      case node
      when Prism::PreExecutionNode
        return if first.nil?
        body = source.byteslice(node.opening_loc.end_offset...node.closing_loc.start_offset)
        first << body << ";"
        edits << [node.location.start_offset, node.location.end_offset, "nil" + "\n" * body.count("\n")]
      when Prism::PostExecutionNode
        at = node.keyword_loc
        edits << [at.start_offset, at.end_offset, "::Belljar.once(#{at.start_offset})"]
      when Prism::CallNode
        if first && node.receiver.nil? && EDITS.include?(node.name)
          edits << [node.location.start_offset, node.location.start_offset, "($_ = $_."] << [node.location.end_offset, node.location.end_offset, ")"]
        end
        node.compact_child_nodes.each { |child| collect(child, source, first, edits) }
      else node.compact_child_nodes.each { |child| collect(child, source, first, edits) }
      end
    end

    def report(error)
      lines = (error.backtrace || []).reject { |line| line.start_with?("belljar:", "eval:") || line.match?(/\A[^:]*:in 'Kernel\.eval'\z/) }
      error.set_backtrace(lines.map { |line| line.sub("'<compiled>'", "'<main>'") })
      flush
      $stderr.write(lines.empty? ? "#{error.detailed_message.chomp}\n" : error.full_message)
    end

    # Run a block as a program: the exit code.
    def guard
      yield
      0
    rescue SystemExit => error
      error.status
    rescue SignalException => error
      128 + error.signo
    rescue Exception => error # rubocop:disable Lint/RescueException
      report(error)
      1
    end

    def finish(status)
      Minitest.parallel_executor = Minitest::Parallel::Executor.new(0) if defined?(Minitest.parallel_executor) # no threads here
      while (block = @at_exit.pop)
        code = guard { block.call }
        status = code unless code.zero?
      end
      ObjectSpace.each_object(IO) { |io| io.flush unless io.closed? rescue nil }
      exit!(status)
    end

    def start(words, environment, pid)
      ENV.replace(environment.to_h { |entry| entry.split("=", 2).then { |name, value| [name, value || ""] } })
      srand(Random.new_seed)
      $belljar_pid = pid
      $stdout.sync = true if $stdout.tty?
      @at_exit.clear
      words = words.map { |word| word.force_encoding(Encoding::UTF_8) }
      finish(guard { Options.new(words.drop(1)).run })
    end
  end

  # The command line of ruby.
  class Options
    def initialize(words)
      @words = words
      @code = []
      @required = []
      @flags = {}
      @split = nil
    end

    def usage(message)
      warn "ruby: #{message}  (-h will show valid options) (RuntimeError)"
      exit 1
    end

    def run
      parse
      $LOAD_PATH.unshift(*@paths) if @paths
      if @flags["v"] == :only
        puts RUBY_DESCRIPTION
        return
      end
      @required.each { |name| require name }
      file, source = program
      return puts(check(file, source)) if @flags["c"]
      ARGV.replace(@words)
      switches if @flags["s"]
      $0 = file
      loops = @flags["n"] || @flags["p"]
      first, source = Belljar.lift(source, loops:) if loops || source.match?(/\bEND\b/)
      source = looped(first, source) if loops
      compile(file, source).eval
    end

    def check(file, source)
      compile(file, source)
      "Syntax OK"
    end

    def compile(file, source)
      verbose = $VERBOSE
      $VERBOSE = nil if file == "-e" && !verbose # a pattern as a condition is what -e is for
      RubyVM::InstructionSequence.compile(source, file, file == "-e" ? nil : File.expand_path(file))
    rescue SyntaxError => error
      raise error.class, "#{file}: #{$stderr.tty? ? error.message : error.message.gsub(/\e\[[\d;]*m/, "")}", [], cause: nil
    ensure
      $VERBOSE = verbose
    end

    def program
      return ["-e", @code.join("\n") + "\n"] unless @code.empty?
      name = @words.shift || "-"
      source = name == "-" ? $stdin.read : read(name)
      source = source.lines.drop_while { |line| !line.match?(/\A#!.*ruby/) }.join if @flags["x"]
      source = source.dup.force_encoding(Encoding::UTF_8)
      data(name, source)
      [name, source]
    end

    def read(name)
      name = ENV["PATH"].to_s.split(":").map { |place| File.join(place, name) }.find { |path| File.file?(path) } || name if @flags["S"] && !name.include?("/")
      raise Errno::EISDIR, name if File.directory?(name)
      File.read(name)
    rescue SystemCallError => error
      warn "ruby: #{error.class.new.message} -- #{name} (LoadError)"
      exit 1
    end

    def data(name, source)
      at = source.b =~ /^__END__\r?\n/ or return
      at += $~[0].bytesize
      file = name == "-" ? StringIO.new(source.byteslice(at..)) : File.open(name)
      file.seek(at) unless name == "-"
      Object.const_set(:DATA, file)
    end

    def looped(first, source)
      # Options are as global as they are in Ruby.
      $; = Regexp.new(@split) if @split
      $\ = $/ if @flags["l"]
      head = "#{first}while gets#{"(chomp: true)" if @flags["l"]};#{"$F=$_.split;" if @flags["a"]}"
      "#{head}#{source}\n#{"print $_;" if @flags["p"]}end\n"
    end

    def switches
      while (word = ARGV.first)&.start_with?("-") && word != "-"
        ARGV.shift
        break if word == "--"
        name, value = word.sub(/\A-+/, "").split("=", 2)
        value = true if value.nil?
        eval("$#{name.tr("-", "_")} = value", binding, __FILE__, __LINE__)
      end
    end

    def parse
      while (word = @words.first)&.start_with?("-") && word != "-"
        @words.shift
        break if word == "--"
        word.start_with?("--") ? long(word) : short(word[1..])
      end
      only = @flags["v"] && @code.empty? && @words.empty?
      @flags["v"] = :only if only || @flags["version"]
    end

    def long(word)
      case word
      when "--version" then @flags["version"] = true
      when "--verbose" then $VERBOSE = true
      when "--help" then help
      when "--copyright" then puts(RUBY_COPYRIGHT) || exit
      when "--disable", "--enable", "--encoding", "--external-encoding", "--internal-encoding" then @words.shift
      when /\A--(disable|enable|yjit|jit|encoding|external-encoding|internal-encoding|parser|debug-frozen)/ then nil
      else usage("invalid option #{word}")
      end
    end

    def short(letters)
      until letters.empty?
        letter, letters = letters[0], letters[1..]
        case letter
        when "n", "p", "a", "l", "c", "s", "x", "S" then @flags[letter] = true
        when "v" then @flags["v"] = $VERBOSE = true
        when "w" then $VERBOSE = true
        when "h" then help
        when "d", "y" then nil
        when "U" then Encoding.default_internal = Encoding::UTF_8
        when "W"
          level = letters[/\A:?[\w-]*/]
          letters = letters[level.size..]
          $VERBOSE = { "0" => nil, "1" => false }.fetch(level, true) unless level.start_with?(":")
        when "0"
          digits = letters[/\A[0-7]*/]
          letters = letters[digits.size..]
          code = digits.oct
          $/ = digits.empty? ? "\0" : code > 255 ? nil : code.zero? ? "" : code.chr
        when "i"
          ARGF.inplace_mode = letters
          letters = ""
        else
          value = letters.empty? && letter != "T" && letter != "K" ? @words.shift : letters
          usage("no code specified for -e") if letter == "e" && value.nil?
          letters = ""
          argument(letter, value.to_s)
        end
      end
    end

    def argument(letter, value)
      case letter
      when "e" then @code << value
      when "r" then @required << value
      when "I" then (@paths ||= []).concat(value.split(":").map { |path| File.expand_path(path) })
      when "F" then @split = value
      when "C", "X" then Dir.chdir(value)
      when "E" then Encoding.default_external, Encoding.default_internal = value.split(":")
      when "K", "T" then nil
      else usage("invalid option -#{letter}")
      end
    end

    def help
      puts "Usage: ruby [options] [--] [filepath] [arguments]", "  -0 -a -c -C -e -E -F -h -i -I -l -n -p -r -s -S -v -w -W -x"
      exit
    end
  end

  # What Kernel has of processes.
  module Commands
    def system(*words, **options)
      strict = options[:exception]
      status = Belljar.run(words, options)
      raise "Command failed with exit #{status.exitstatus}: #{words.grep(String).first.split.first}" if strict && !status.success?
      status.success? || false
    rescue SystemCallError
      raise if strict
      nil
    end

    def `(command) = Belljar.capture([command.to_str])

    def exec(*words, **options)
      status = Belljar.run(words, options)
      exit!(status.exitstatus || 128 + status.termsig)
    rescue SystemCallError => error
      raise error.class, words.grep(String).first.split.first
    end

    def spawn(*) = raise(NotImplementedError, "spawn: not possible in WebAssembly; use system, backticks or IO.popen")
    def fork(*) = raise(NotImplementedError, "fork: not possible in WebAssembly; use system, backticks or IO.popen")
    def at_exit(&block) = Belljar.at_exit(&block)
  end

  # File modes, which WASI has not.
  module Modes
    def chmod(mode, *paths) = paths.each { |path| Belljar.ask("chmod", mode, File.expand_path(path)) }.size
    def umask(*mask) = Belljar.ask("umask", *mask).to_i
    def executable?(path) = File.exist?(path) && (stat(path).mode & 0o111).positive?
    def stat(path) = with_mode("stat", path, super)
    def lstat(path) = with_mode("lstat", path, super)

    def with_mode(operation, path, found)
      mode, uid, gid = Belljar.ask(operation, File.expand_path(path)).split.map(&:to_i)
      found.define_singleton_method(:mode) { mode }
      found.define_singleton_method(:uid) { uid }
      found.define_singleton_method(:gid) { gid }
      found.define_singleton_method(:executable?) { (mode & 0o111).positive? }
      found
    end
  end

  module Pipes
    def popen(*words, **options)
      mode = words.size > 1 && words.last.is_a?(String) && !words.first.is_a?(Hash) || words.size > 2 ? words.pop : "r"
      pipe = Belljar.open_pipe(words, mode, options)
      return pipe unless block_given?
      begin
        yield pipe
      ensure
        pipe.close
      end
    end
  end

  # Open3 by files: nothing runs beside a program in WebAssembly.
  module Captures
    def capture3(*words, stdin_data: "", binmode: false, **options)
      Dir.mktmpdir do |top|
        File.binwrite("#{top}/in", stdin_data)
        File.binwrite("#{top}/err", "")
        status = Belljar.run(words, { in: "#{top}/in", out: "#{top}/out", err: "#{top}/err" }.merge(options))
        [*%w[out err].map { |name| File.read("#{top}/#{name}", **(binmode ? { mode: "rb" } : {})) }, status]
      end
    end

    def capture2(*words, err: STDERR, **options) = capture3(*words, err:, **options).values_at(0, 2)
    def capture2e(*words, **options) = capture3(*words, err: %i[child out], **options).values_at(0, 2)
  end
end

alias $? $belljar_status
alias $CHILD_STATUS $belljar_status
alias $$ $belljar_pid

module Kernel
  prepend Belljar::Commands
  class << self
    prepend Belljar::Commands
  end
end
Object.prepend(Belljar::Commands) unless Object.new.method(:`).owner == Belljar::Commands
File.singleton_class.prepend(Belljar::Modes)
IO.singleton_class.prepend(Belljar::Pipes)
class << Process
  prepend Belljar::Commands
  def last_status = $belljar_status
  def pid = $belljar_pid
end
require "open3"
require "tmpdir"
class << Open3
  prepend Belljar::Captures
end
